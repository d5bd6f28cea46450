// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/leaf_readers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/array/flat_range.h"

namespace cairn {

namespace {

/// The array in the cells of its drawing.
format::StoredArray cells_of(const PlacedArray& array) {
  format::StoredArray cells = array.array().stored;
  const NamedSharding* named = array.sharding.named();
  if (cells.one_object && named != nullptr) cells.chunk_shape = named->shard_shape(cells.shape);
  for (Index& size : cells.chunk_shape) size = std::max<Index>(size, 1);
  return cells;
}

std::vector<LeafReaders::Part> held_parts(const PlacedArray& array) {
  const Shape& shape = array.array().stored.shape;
  const DeviceGroups& groups = array.sharding.groups(shape);
  std::vector<LeafReaders::Part> parts(groups.size());
  for (std::size_t at = array.sharding.device_count(); at-- > 0;) {
    const std::size_t group = groups.group_of(at);
    if (parts[group].ranks == nullptr)
      parts[group] = {array.sharding.box(at, shape), groups.ranks(group)};
  }
  return parts;
}

Error too_many(const PlacedArray& array) {
  return Error(Code::kInvalidArgument, "plan/too-many-cells",
               fmt::format("leaf {} is read in more than {} pieces; choose another leaf",
                           array.array().path.text(), kMaxReaderCells));
}

}  // namespace

Shape LeafReaders::position(std::size_t cell) const { return index_at(grid, cell); }

Result<LeafReaders> leaf_readers(const PlacedArray& array) {
  const format::StoredArray cells = cells_of(array);
  if (cells.chunk_count() > kMaxReaderCells) return too_many(array);
  LeafReaders result{.parts = cells.one_object,
                     .cell_shape = cells.chunk_shape,
                     .grid = cells.grid(),
                     .readers = {},
                     .held = held_parts(array)};
  result.readers.resize(cells.chunk_count());
  std::uint64_t pairs = 0;
  for (const LeafReaders::Part& part : result.held) {
    const std::vector<int> readers = array.told ? std::vector<int>{0} : *part.ranks;
    for (const std::uint64_t cell : cells.chunks_of(part.box)) {
      pairs += readers.size();
      if (pairs > kMaxReaderCells) return too_many(array);
      auto& all = result.readers[cell];
      all.insert(all.end(), readers.begin(), readers.end());
    }
  }
  for (std::vector<int>& readers : result.readers) {
    std::ranges::sort(readers);
    const auto rest = std::ranges::unique(readers);
    readers.erase(rest.begin(), rest.end());
  }
  return result;
}

const PlacedArray* most_telling_array(const PlannedLoad& load) {
  const auto rank = [](const PlacedArray& array) {
    return std::tuple(array.bytes() > 0, array.split(), array.bytes());
  };
  const auto best = std::ranges::max_element(load.arrays(), {}, rank);
  return best == load.arrays().end() || best->bytes() == 0 ? nullptr : &*best;
}

}  // namespace cairn
