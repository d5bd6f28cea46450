// SPDX-License-Identifier: Apache-2.0
// Which array is stored how: pure, deterministic, the same on every rank, linear in arrays plus
// boxes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/format/codec_spec.h"
#include "cairn/manifest/manifest.h"
#include "cairn/save/leaf_source.h"
#include "cairn/tree/flatten.h"

namespace cairn {

struct PlanOptions {
  std::string layout = {};                ///< kZarr2Layout or kSafetensorsLayout
  format::CodecSpec codec = {};           ///< of zarr2 chunks
  std::uint64_t chunk_bytes = 64 * kMiB;  ///< largest zarr2 chunk, before the codec
  std::optional<DType> float_dtype = {};  ///< cast floats (complex and others stay)
  bool alone = false;                     ///< one rank has every box of every array
};

/// A chunk shape that no two boxes share and that is at most `chunk_bytes` large if it can be:
/// every cut between boxes falls between chunks. Where boxes leave a dimension whole, chunks may
/// hang over its end; elsewhere they divide the box. Arrays that lie on several devices are cut
/// along their two longest dimensions, into chunks of 256 KiB and more, so that other meshes read
/// little that they do not need. `invalid_argument` (plan/uneven-cuts): the
/// cuts force many chunks under 64 KiB. Whoever is `alone` need not keep to boxes: chunks that
/// would be under 256 KiB are not cut there. REQUIRES: sharding.check(shape).
Result<Shape> choose_chunk_shape(const Shape& shape, const Sharding& sharding,
                                 std::size_t item_size, std::uint64_t chunk_bytes,
                                 bool alone = false);

/// Elements [begin, end) of something, in C order.
struct ElementRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const ElementRange&) const = default;
};

/// Part of a box that a rank leaves for whoever puts the tensor together.
struct LeftPiece {
  std::size_t group = 0;     ///< of the box, in the sharding
  std::uint64_t number = 0;  ///< the box in its own C order is cut into pieces of equal size
  Box box;                   ///< the whole box
  ElementRange range;        ///< in its own C order
};

/// What one rank writes of one array.
struct ArrayWork {
  std::vector<std::uint64_t> chunks = {};  ///< zarr2, ascending
  std::vector<ElementRange> ranges = {};   ///< safetensors: written in place
  std::vector<LeftPiece> pieces = {};      ///< safetensors: left for the assembler
  std::optional<int> assembler = {};       ///< safetensors: the rank that needs all pieces, if any
  std::optional<int> hasher = {};          ///< the one that hashes it, of ranks that have it whole
};

/// An array and how it will lie in the store; `stored.key` and offset are set by the layout.
struct PlannedArray {
  KeyPath path;
  std::shared_ptr<const LeafSource> source;  ///< gives elements of the stored type
  format::StoredArray stored;
  std::optional<DType> cast_from;
  Sharding sharding = {};
  ArrayWork work = {};  ///< of this rank; divide_work.h
};

/// How it lies on a mesh; nothing if it does not.
std::optional<PartitionSpec> spec_of(const Sharding& sharding);

/// Everything but the source. `invalid_argument`: zarr2/dtype-unsupported,
/// safetensors/dtype-unsupported, plan/uneven-cuts, each with the leaf.
Result<PlannedArray> plan_array(const KeyPath& path, DType dtype, const Shape& shape,
                                const Sharding& sharding, const PlanOptions& options);

/// The arrays among `leaves`, in order; they share the leaves' memory. `invalid_argument`
/// (plan/no-memory): a box that `rank` holds has no memory here.
Result<std::vector<PlannedArray>> plan_arrays(const std::vector<NamedLeaf>& leaves,
                                              const PlanOptions& options, int rank = 0);

/// Drops the sources of arrays that may change.
void forget_changing(std::vector<PlannedArray>& arrays);

}  // namespace cairn
