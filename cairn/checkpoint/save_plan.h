// SPDX-License-Identifier: Apache-2.0
// Which array is stored how: pure, deterministic, the same on every rank, linear in arrays plus
// boxes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/checkpoint/manifest.h"
#include "cairn/format/codec_spec.h"
#include "cairn/tree/flatten.h"

namespace cairn::inline checkpoint {

struct PlanOptions {
  std::string_view layout;                ///< kZarr2Layout or kSafetensorsLayout
  format::CodecSpec codec;                ///< of zarr2 chunks
  std::uint64_t chunk_bytes = 64 * kMiB;  ///< largest zarr2 chunk, before the codec
  std::uint64_t shard_size = 5 * kGiB;    ///< largest safetensors part; one tensor may exceed it
  std::optional<DType> float_dtype;       ///< cast floats (complex and others stay)
};

/// A chunk shape that no two boxes share and that is at most `chunk_bytes` large if it can be:
/// every cut between boxes falls between chunks. Where boxes leave a dimension whole, chunks may
/// hang over its end; elsewhere they divide the box. `invalid_argument` (plan/uneven-cuts): the
/// cuts force chunks under 64 KiB.
Result<Shape> choose_chunk_shape(const ShardedArray& array, std::size_t item_size,
                                 std::uint64_t chunk_bytes);

/// An array of the tree and how it will lie in the store; `stored.key` and offset are set by the
/// layout.
struct PlannedArray {
  KeyPath path;
  const ShardedArray* source = nullptr;  ///< in the tree that was planned
  format::StoredArray stored;
  std::optional<DType> cast_from;
};

/// The arrays among `leaves`, in order; the tree must outlive the plan. `invalid_argument`:
/// zarr2/dtype-unsupported, safetensors/dtype-unsupported, plan/uneven-cuts, each with the leaf.
Result<std::vector<PlannedArray>> plan_arrays(const std::vector<NamedLeaf>& leaves,
                                              const PlanOptions& options);

}  // namespace cairn::inline checkpoint
