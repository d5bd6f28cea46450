// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/flat_range.h"

#include <random>

#include <gtest/gtest.h>

namespace cairn {
namespace {

// Every index of the box, in C order, as positions in the shape.
std::vector<std::uint64_t> positions(const Shape& shape, const Box& box) {
  std::vector<std::uint64_t> found;
  const std::uint64_t count = box.elements();
  const Shape size = box.shape();
  for (std::uint64_t n = 0; n < count; ++n) {
    Shape index = box.begin;
    std::uint64_t rest = n;
    for (std::size_t d = shape.size(); d-- > 0;) {
      index[d] += static_cast<Index>(rest % static_cast<std::uint64_t>(size[d]));
      rest /= static_cast<std::uint64_t>(size[d]);
    }
    found.push_back(flat_index(shape, index));
  }
  return found;
}

TEST(FlatRange, AnIndexIsAtItsOwnPosition) {
  const Shape shape{3, 1, 4, 2};
  EXPECT_EQ(index_at(shape, 0), (Shape{0, 0, 0, 0}));
  EXPECT_EQ(index_at(shape, 13), (Shape{1, 0, 2, 1}));
  for (std::uint64_t n = 0; n < 24; ++n) EXPECT_EQ(flat_index(shape, index_at(shape, n)), n);
  EXPECT_EQ(index_at({}, 0), Shape());
}

TEST(FlatRange, BoxesCoverExactlyTheRunInOrder) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    Shape shape(random() % 5);
    std::uint64_t total = 1;
    for (Index& size : shape) {
      size = static_cast<Index>(1 + random() % 5);
      total *= static_cast<std::uint64_t>(size);
    }
    std::uint64_t begin = random() % (total + 1);
    std::uint64_t end = random() % (total + 1);
    if (begin > end) std::swap(begin, end);
    const auto boxes = flat_range_boxes(shape, begin, end);
    std::uint64_t next = begin;
    for (const Box& box : boxes) {
      EXPECT_TRUE(is_flat(shape, box));
      for (const std::uint64_t position : positions(shape, box)) ASSERT_EQ(position, next++);
    }
    ASSERT_EQ(next, end);
    EXPECT_LE(boxes.size(), std::max<std::size_t>(1, 2 * shape.size()));
  }
}

TEST(FlatRange, KnowsWhichBoxesAreOneRun) {
  const Shape shape{4, 3, 2};
  EXPECT_TRUE(is_flat(shape, Box{{1, 0, 0}, {3, 3, 2}}));
  EXPECT_TRUE(is_flat(shape, Box{{1, 1, 0}, {2, 3, 2}}));
  EXPECT_TRUE(is_flat(shape, Box{{1, 1, 1}, {2, 2, 2}}));
  EXPECT_FALSE(is_flat(shape, Box{{1, 1, 0}, {3, 3, 2}}));
  EXPECT_FALSE(is_flat(shape, Box{{0, 0, 0}, {1, 3, 1}}));
  EXPECT_TRUE(is_flat(shape, Box{{0, 0, 0}, {0, 3, 1}}));
}

}  // namespace
}  // namespace cairn
