// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/tiling.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace cairn {
namespace {

/// "ok", or the reason.
std::string outcome(const Shape& shape, const std::vector<Box>& boxes) {
  std::vector<const Box*> pointers;
  for (const Box& box : boxes) pointers.push_back(&box);
  const auto checked = check_tiling(shape, pointers);
  if (checked) return "ok";
  EXPECT_EQ(checked.error().code(), Code::kInvalidArgument);
  return std::string(checked.error().reason());
}

/// All cells of a grid with `cells` cells of size 2 along each dimension.
std::vector<Box> grid(const Shape& cells) {
  std::vector<Box> boxes;
  const std::uint64_t count = Box::whole(cells).elements();
  for (std::uint64_t n = 0; n < count; ++n) {
    Box box{Shape(cells.size()), Shape(cells.size())};
    std::uint64_t rest = n;
    for (std::size_t dim = cells.size(); dim-- > 0;) {
      const auto size = static_cast<std::uint64_t>(cells[dim]);
      box.begin[dim] = 2 * static_cast<Index>(rest % size);
      box.end[dim] = box.begin[dim] + 2;
      rest /= size;
    }
    boxes.push_back(box);
  }
  return boxes;
}

Shape doubled(Shape cells) {
  for (Index& size : cells) size *= 2;
  return cells;
}

TEST(Tiling, AcceptsWholesGridsAndReplicas) {
  EXPECT_EQ(outcome({}, {Box::whole({})}), "ok");
  EXPECT_EQ(outcome({}, {Box::whole({}), Box::whole({})}), "ok");
  EXPECT_EQ(outcome({4, 6}, {Box::whole({4, 6})}), "ok");
  std::vector<Box> boxes = grid({2, 3});
  EXPECT_EQ(outcome({4, 6}, boxes), "ok");
  boxes.insert(boxes.end(), {boxes[1], boxes[5], boxes[5]});
  EXPECT_EQ(outcome({4, 6}, boxes), "ok");
  boxes.push_back({{1, 1}, {1, 3}});
  EXPECT_EQ(outcome({4, 6}, boxes), "ok");
}

TEST(Tiling, AcceptsBoxesThatNoStraightCutSeparates) {
  const std::vector<Box> pinwheel = {
      {{0, 0}, {1, 2}}, {{0, 2}, {2, 3}}, {{2, 1}, {3, 3}}, {{1, 0}, {3, 1}}, {{1, 1}, {2, 2}}};
  EXPECT_EQ(outcome({3, 3}, pinwheel), "ok");
  std::vector<Box> hole(pinwheel.begin(), pinwheel.end() - 1);
  EXPECT_EQ(outcome({3, 3}, hole), "sharding/not-covered");
}

TEST(Tiling, SaysWhetherSomethingIsMissingOrTwiceThere) {
  EXPECT_EQ(outcome({8}, {}), "sharding/not-covered");
  EXPECT_EQ(outcome({}, {}), "sharding/not-covered");
  EXPECT_EQ(outcome({8}, {{{0}, {4}}}), "sharding/not-covered");
  EXPECT_EQ(outcome({8}, {{{0}, {5}}, {{4}, {8}}}), "sharding/overlap");
  EXPECT_EQ(outcome({8}, {{{0}, {4}}, {{2}, {6}}}), "sharding/overlap");
  EXPECT_EQ(outcome({8}, {{{0}, {8}}, {{0}, {4}}, {{4}, {8}}}), "sharding/overlap");
  EXPECT_EQ(outcome({2, 2}, {{{0, 0}, {1, 2}}, {{0, 1}, {2, 2}}}), "sharding/overlap");
  EXPECT_EQ(outcome({0, 4}, {}), "ok");
  EXPECT_EQ(outcome({0, 4}, {{{0, 0}, {0, 2}}}), "ok");
}

TEST(Tiling, NamesTwoBoxesThatOverlap) {
  const Box a{{0, 0}, {3, 2}};
  const Box b{{2, 1}, {4, 2}};
  const auto checked = check_tiling({4, 2}, {&a, &b});
  EXPECT_NE(checked.error().message().find("[0:3, 0:2] and [2:4, 1:2]"), std::string::npos)
      << checked.error().message();
}

/// Cuts boxes in two at random places until there are `count`.
std::vector<Box> random_cuts(std::mt19937& random, const Shape& shape, std::size_t count) {
  std::vector<Box> boxes = {Box::whole(shape)};
  for (int tries = 0; boxes.size() < count && tries < 1000; ++tries) {
    Box& box = boxes[random() % boxes.size()];
    const std::size_t dim = random() % shape.size();
    const Index size = box.end[dim] - box.begin[dim];
    if (size < 2) continue;
    Box rest = box;
    rest.begin[dim] = box.end[dim] = box.begin[dim] + 1 + static_cast<Index>(random()) % (size - 1);
    boxes.push_back(rest);
  }
  std::shuffle(boxes.begin(), boxes.end(), random);
  return boxes;
}

/// How often each element is covered, counted one by one.
std::string counted(const Shape& shape, std::vector<Box> boxes) {
  std::uint64_t volume = 0;
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
  bool exact = true;
  for (Index x = 0; x < shape[0]; ++x) {
    for (Index y = 0; y < shape[1]; ++y) {
      for (Index z = 0; z < shape[2]; ++z) {
        const Box cell{{x, y, z}, {x + 1, y + 1, z + 1}};
        const auto times = std::count_if(boxes.begin(), boxes.end(),
                                         [&](const Box& box) { return box.contains(cell); });
        exact = exact && times == 1;
        volume += static_cast<std::uint64_t>(times);
      }
    }
  }
  if (exact) return "ok";
  return volume < Box::whole(shape).elements() ? "sharding/not-covered" : "sharding/overlap";
}

TEST(Tiling, AgreesWithACountOfEveryElement) {
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    const Shape shape = {static_cast<Index>(1 + random() % 6), static_cast<Index>(1 + random() % 6),
                         static_cast<Index>(1 + random() % 6)};
    std::vector<Box> boxes = random_cuts(random, shape, 1 + random() % 12);
    for (std::size_t damage = random() % 3; damage > 0; --damage) {
      Box& box = boxes[random() % boxes.size()];
      const std::size_t dim = random() % 3;
      if (random() % 2 == 0) {
        box.begin[dim] = std::max<Index>(box.begin[dim] - 1, 0);
      } else {
        box.end[dim] = std::max(box.begin[dim] + 1, box.end[dim] - 1);
      }
    }
    const std::string wanted = counted(shape, boxes);
    EXPECT_EQ(outcome(shape, boxes), wanted) << "round " << round;
    refused += wanted == "ok" ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

TEST(Tiling, TakesLargeGridsOfManyDimensions) {
  for (const Shape& cells :
       {Shape{20000}, Shape{128, 128}, Shape{8, 8, 8, 8}, Shape{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}}) {
    std::vector<Box> boxes = grid(cells);
    EXPECT_EQ(outcome(doubled(cells), boxes), "ok") << to_string(cells);
    boxes.back().begin.back() -= 1;
    EXPECT_EQ(outcome(doubled(cells), boxes), "sharding/overlap") << to_string(cells);
    boxes.pop_back();
    EXPECT_EQ(outcome(doubled(cells), boxes), "sharding/not-covered") << to_string(cells);
  }
}

TEST(Tiling, GivesUpOnVeryManyIrregularBoxes) {
  std::mt19937 random(2);
  std::vector<Box> boxes = random_cuts(random, Shape(kMaxRank, 3), 200);
  EXPECT_EQ(outcome(Shape(kMaxRank, 3), boxes), "sharding/too-irregular");
}

}  // namespace
}  // namespace cairn
