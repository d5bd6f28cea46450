// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/save_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/checked.h"
#include "cairn/base/error_list.h"
#include "cairn/format/safetensors/header.h"
#include "cairn/format/zarr2/dtype.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

// Chunks that are smaller than the cuts of the boxes ask for are accepted while they are large or
// few.
constexpr std::uint64_t kSmallestForcedChunk = 64 * kKiB;
constexpr std::uint64_t kMostChunksPerBox = 16;

// Arrays on several devices get so many chunks along each of their two longest dimensions, as long
// as a chunk keeps at least this size.
constexpr Index kReshardParts = 8;
constexpr std::uint64_t kSmallestReshardChunk = 256 * kKiB;

std::uint64_t bytes_of(const Shape& shape, std::size_t item_size) {
  std::uint64_t bytes = item_size;
  for (const Index size : shape) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

std::uint64_t chunk_count(const Shape& shape, const Shape& chunk) {
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    count *= static_cast<std::uint64_t>(ceil_div(shape[d], chunk[d]));
  }
  return count;
}

Index smallest_factor(Index value) {
  for (Index factor = 2; factor * factor <= value && factor <= 1024; ++factor) {
    if (value % factor == 0) return factor;
  }
  return value;
}

// Splits the outermost free dimension first, so that a chunk stays one run of the caller's memory;
// then halves (or thirds, ...) of the others. Returns false when nothing is left to split.
bool split_once(const std::vector<Cut>& cuts, Shape& chunk, std::uint64_t pieces) {
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (!cuts[d].free || chunk[d] == 1) continue;
    const auto parts =
        static_cast<Index>(std::min<std::uint64_t>(pieces, static_cast<std::uint64_t>(chunk[d])));
    chunk[d] = ceil_div(chunk[d], parts);
    return true;
  }
  std::size_t best = chunk.size();
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (chunk[d] == 1) continue;
    if (best == chunk.size() || smallest_factor(chunk[d]) < smallest_factor(chunk[best])) best = d;
  }
  if (best == chunk.size()) return false;
  chunk[best] /= smallest_factor(chunk[best]);
  return true;
}

// The two longest dimensions, longest first.
std::vector<std::size_t> longest_dimensions(const Shape& shape) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t d) { return shape[d]; });
  order.resize(std::min<std::size_t>(order.size(), 2));
  return order;
}

// Splits a chunk for the sake of readers on other meshes. Returns false when it is fine enough.
bool split_for_others(const Shape& shape, const std::vector<Cut>& cuts, std::size_t item_size,
                      Shape& chunk) {
  std::optional<std::size_t> coarsest;
  Index fewest = kReshardParts;
  for (const std::size_t d : longest_dimensions(shape)) {
    const Index parts = ceil_div(shape[d], chunk[d]);
    const bool splits = cuts[d].free ? chunk[d] > 1 : chunk[d] % 2 == 0;
    if (!splits || parts >= fewest) continue;
    fewest = parts;
    coarsest = d;
  }
  if (!coarsest || bytes_of(chunk, item_size) / 2 < kSmallestReshardChunk) return false;
  chunk[*coarsest] = ceil_div(chunk[*coarsest], Index{2});
  return true;
}

Shape largest_chunk(const std::vector<Cut>& cuts) {
  Shape chunk;
  chunk.reserve(cuts.size());
  for (const Cut& cut : cuts) chunk.push_back(cut.step);
  return chunk;
}

Result<void> check_dtype(DType dtype, std::string_view layout) {
  if (layout == kZarr2Layout) {
    CAIRN_TRY(format::zarr2::dtype_string(dtype));
  } else {
    CAIRN_TRY(format::safetensors::dtype_string(dtype));
  }
  return {};
}

}  // namespace

Result<Shape> choose_chunk_shape(const Shape& shape, const Sharding& sharding,
                                 std::size_t item_size, std::uint64_t chunk_bytes, bool alone) {
  std::vector<Cut> cuts = sharding.cuts(shape);
  Shape chunk = largest_chunk(cuts);
  if (alone && bytes_of(chunk, item_size) < kSmallestReshardChunk) {
    cuts = Sharding().cuts(shape);
    chunk = largest_chunk(cuts);
  }
  const bool small = bytes_of(chunk, item_size) < kSmallestForcedChunk;
  if (small && chunk_count(shape, chunk) > kMostChunksPerBox * sharding.groups(shape).size()) {
    return Error(
        Code::kInvalidArgument, "plan/uneven-cuts",
        fmt::format(
            "the boxes of this array of shape {} are cut so unevenly that chunks would be {}; "
            "save it as safetensors, or split it evenly",
            to_string(shape), to_string(chunk)));
  }
  const std::uint64_t limit = std::max<std::uint64_t>(chunk_bytes, item_size);
  while (bytes_of(chunk, item_size) > limit) {
    if (!split_once(cuts, chunk, ceil_div(bytes_of(chunk, item_size), limit))) break;
  }
  if (sharding.device_count() > 1) {
    while (split_for_others(shape, cuts, item_size, chunk)) {
    }
  }
  return chunk;
}

std::optional<PartitionSpec> spec_of(const Sharding& sharding) {
  const NamedSharding* named = sharding.named();
  return named != nullptr ? std::optional(named->spec()) : std::nullopt;
}

Result<PlannedArray> plan_array(const KeyPath& path, DType dtype, const Shape& shape,
                                const Sharding& sharding, const PlanOptions& options) {
  PlannedArray planned{path, nullptr, {}, {}, sharding, {}};
  format::StoredArray& stored = planned.stored;
  stored.dtype = dtype;
  stored.shape = shape;
  if (options.float_dtype && is_float(dtype) && *options.float_dtype != dtype) {
    stored.dtype = *options.float_dtype;
    planned.cast_from = dtype;
  }
  const auto place = [&] { return "leaf " + path.text(); };
  CAIRN_TRY(check_dtype(stored.dtype, options.layout).in(place));
  if (options.layout == kZarr2Layout) {
    stored.codec = options.codec;
    CAIRN_TRY_ASSIGN(stored.chunk_shape,
                     choose_chunk_shape(shape, sharding, item_size(stored.dtype),
                                        options.chunk_bytes, options.alone)
                         .in(place));
  } else {
    stored.one_object = true;
    stored.packed = bit_width(stored.dtype) < 8 && stored.dtype != DType::kBool;
    stored.chunk_shape = stored.shape;
    for (Index& size : stored.chunk_shape) size = std::max<Index>(size, 1);
  }
  return planned;
}

Result<std::vector<PlannedArray>> plan_arrays(const std::vector<NamedLeaf>& leaves,
                                              const PlanOptions& options, int rank) {
  std::vector<PlannedArray> arrays;
  arrays.reserve(leaves.size());
  ErrorList errors;
  for (const NamedLeaf& leaf : leaves) {
    const auto* array = std::get_if<ShardedArray>(&leaf.leaf);
    if (array == nullptr) continue;
    auto planned =
        plan_array(leaf.path, array->dtype(), array->shape(), array->sharding(), options);
    const auto place = [&] { return "leaf " + leaf.path.text(); };
    if (!errors.take(planned) || !errors.take(check_memory(*array, rank).in(place))) continue;
    planned->source = memory_source(*array, planned->stored.dtype);
    arrays.push_back(*std::move(planned));
  }
  CAIRN_TRY(errors.result());
  return arrays;
}

void forget_changing(std::vector<PlannedArray>& arrays) {
  for (PlannedArray& array : arrays) {
    if (array.source && !array.source->immutable()) array.source.reset();
  }
}

}  // namespace cairn
