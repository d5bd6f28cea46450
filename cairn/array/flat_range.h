// SPDX-License-Identifier: Apache-2.0
// Runs of elements in C order, seen as boxes.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/array/shape.h"

namespace cairn {

/// Elements [begin, end) of an array in C order, as the fewest boxes, in order: at most 2 * rank -
/// 1 (one at rank 0). REQUIRES: begin <= end <= elements of the shape.
std::vector<Box> flat_range_boxes(const Shape& shape, std::uint64_t begin, std::uint64_t end);

/// Position in C order of an index. REQUIRES: inside the shape.
std::uint64_t flat_index(const Shape& shape, const Shape& index);

/// The index at a position in C order. REQUIRES: position < elements of the shape.
Shape index_at(const Shape& shape, std::uint64_t position);

/// Splits the box into its contiguous runs in the C order of the shape, and calls visit(Box) for
/// each, in order.
template <typename Visit>
void each_run(const Shape& shape, Box box, const Visit& visit, std::size_t from = 0);

/// Is the box one contiguous run in the C order of the shape? Empty boxes are.
bool is_flat(const Shape& shape, const Box& box);

template <typename Visit>
void each_run(const Shape& shape, Box box, const Visit& visit, std::size_t from) {
  if (is_flat(shape, box)) return visit(box);
  const Index end = box.end[from];
  for (Index at = box.begin[from]; at < end; ++at) {
    box.begin[from] = at;
    box.end[from] = at + 1;
    each_run(shape, box, visit, from + 1);
  }
}

}  // namespace cairn
