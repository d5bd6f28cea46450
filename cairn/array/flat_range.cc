// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/flat_range.h"

#include <algorithm>

namespace cairn {

namespace {

// The largest box that starts at `begin` and does not run past `end`: whole along some inner
// dimensions, several steps along the next one, one step along the rest.
Box box_from(const Shape& shape, std::uint64_t begin, std::uint64_t end) {
  Box box{index_at(shape, begin), {}};
  box.end = box.begin;
  for (Index& bound : box.end) ++bound;
  std::uint64_t inner = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto room = static_cast<std::uint64_t>(shape[d] - box.begin[d]);
    const std::uint64_t steps = std::min(room, (end - begin) / inner);
    box.end[d] = box.begin[d] + static_cast<Index>(steps);
    if (box.begin[d] != 0 || steps < static_cast<std::uint64_t>(shape[d])) break;
    inner *= static_cast<std::uint64_t>(shape[d]);
  }
  return box;
}

}  // namespace

std::vector<Box> flat_range_boxes(const Shape& shape, std::uint64_t begin, std::uint64_t end) {
  std::vector<Box> boxes;
  while (begin < end) {
    boxes.push_back(box_from(shape, begin, end));
    begin += boxes.back().elements();
  }
  return boxes;
}

Shape index_at(const Shape& shape, std::uint64_t position) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto size = static_cast<std::uint64_t>(shape[d]);
    index[d] = static_cast<Index>(position % size);
    position /= size;
  }
  return index;
}

std::uint64_t flat_index(const Shape& shape, const Shape& index) {
  std::uint64_t position = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    position =
        position * static_cast<std::uint64_t>(shape[d]) + static_cast<std::uint64_t>(index[d]);
  }
  return position;
}

bool is_flat(const Shape& shape, const Box& box) {
  if (box.empty()) return true;
  bool inner_whole = true;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const Index size = box.end[d] - box.begin[d];
    if (!inner_whole && size != 1) return false;
    inner_whole = inner_whole && size == shape[d];
  }
  return true;
}

}  // namespace cairn
