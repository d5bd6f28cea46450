// SPDX-License-Identifier: Apache-2.0
// Plans how each array is stored: pure, deterministic, the same on every rank, linear in arrays
// plus boxes.
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
  bool alone = false;                     ///< this rank has every box of every array
};

/// A chunk shape, at most `chunk_bytes` large if possible, such that every cut between boxes falls
/// between chunks. In dimensions that boxes leave whole, the last chunk may extend past the end; in
/// the others chunks divide the box. Arrays on several devices are cut along their two longest
/// dimensions into chunks of 256 KiB or more, so that loads onto other meshes read little more than
/// they need. `invalid_argument` (plan/uneven-cuts): the cuts force many chunks under 64 KiB. A
/// process that is `alone` ignores cuts that would force chunks under 256 KiB. REQUIRES:
/// sharding.check(shape).
Result<Shape> choose_chunk_shape(const Shape& shape, const Sharding& sharding,
                                 std::size_t item_size, std::uint64_t chunk_bytes,
                                 bool alone = false);

/// Elements [begin, end) of something, in C order.
struct ElementRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const ElementRange&) const = default;
};

/// A part of a box that a rank leaves for the assembler of the tensor.
struct LeftPiece {
  std::size_t group = 0;     ///< of the box, in the sharding
  std::uint64_t number = 0;  ///< the box in its own C order is cut into pieces of equal size
  Box box;                   ///< the whole box
  ElementRange range;        ///< in its own C order
};

/// The part of one array that one rank writes.
struct ArrayWork {
  std::vector<std::uint64_t> chunks = {};  ///< zarr2, ascending
  std::vector<ElementRange> ranges = {};   ///< safetensors: written in place
  std::vector<LeftPiece> pieces = {};      ///< safetensors: left for the assembler
  std::optional<int> assembler = {};       ///< safetensors: the rank that needs all pieces, if any
  std::optional<int> hasher = {};  ///< the rank that hashes it, among those that have it whole
};

/// An array and how it will be stored; the layout sets `stored.key` and offset.
struct PlannedArray {
  KeyPath path;
  std::shared_ptr<const LeafSource> source;  ///< gives elements of the stored type
  format::StoredArray stored;
  std::optional<DType> cast_from;
  Sharding sharding = {};
  ArrayWork work = {};  ///< of this rank; divide_work.h
};

/// Its spec on its mesh; nullopt if it is not on one.
std::optional<PartitionSpec> spec_of(const Sharding& sharding);

/// Everything except the source. `invalid_argument`: zarr2/dtype-unsupported,
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
