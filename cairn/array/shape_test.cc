// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/shape.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr Index kMost = std::numeric_limits<Index>::max();

/// The count, or the reason why there is none.
std::string counted(const Shape& shape) {
  const auto count = element_count(shape);
  if (count) return std::to_string(*count);
  EXPECT_EQ(count.error().code(), Code::kInvalidArgument);
  return std::string(count.error().reason());
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(counted({}), "1");
  EXPECT_EQ(counted({0}), "0");
  EXPECT_EQ(counted({2, 3, 4}), "24");
  EXPECT_EQ(counted({kMost}), std::to_string(kMost));
  EXPECT_EQ(counted(Shape(kMaxRank, 1)), "1");
}

TEST(Shape, RefusesWhatNobodyCouldHold) {
  EXPECT_EQ(counted({-1}), "shape/negative");
  EXPECT_EQ(counted({0, -1}), "shape/negative");
  EXPECT_EQ(counted({std::numeric_limits<Index>::min()}), "shape/negative");
  EXPECT_EQ(counted({kMost, 2}), "shape/overflow");
  EXPECT_EQ(counted({Index{1} << 32, Index{1} << 31}), "shape/overflow");
  EXPECT_EQ(counted({kMost, kMost, -1}), "shape/negative");
  EXPECT_EQ(counted(Shape(kMaxRank + 1, 1)), "shape/rank");
}

TEST(Shape, RefusesHugeDimensionsBesideAZeroToo) {
  EXPECT_EQ(counted({kMost, 0}), "0");
  EXPECT_EQ(counted({kMost, 0, 2}), "shape/overflow");
}

TEST(Shape, IsWrittenAsATuple) {
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(Shape{3}), "(3,)");
  EXPECT_EQ(to_string(Shape{2, 3}), "(2, 3)");
}

TEST(Box, KnowsShapeAndSize) {
  const Box box{{1, 2}, {4, 8}};
  EXPECT_EQ(box.shape(), (Shape{3, 6}));
  EXPECT_EQ(box.elements(), 18U);
  EXPECT_EQ(box.to_string(), "[1:4, 2:8]");
  EXPECT_FALSE(box.empty());
  EXPECT_EQ(Box::whole({}).elements(), 1U);
  EXPECT_FALSE(Box::whole({}).empty());
  EXPECT_EQ(Box::whole({}).to_string(), "[]");
  EXPECT_EQ(Box::whole({5, 0}).elements(), 0U);
  EXPECT_TRUE(Box::whole({5, 0}).empty());
}

TEST(Box, ContainsEveryEmptyBoxOfItsRankAndNoneOfAnother) {
  const Box box{{1, 2}, {4, 8}};
  EXPECT_TRUE(box.contains(box));
  EXPECT_TRUE(box.contains({{9, 9}, {9, 9}}));
  EXPECT_FALSE(box.contains({{1, 2}, {4, 9}}));
  EXPECT_FALSE(box.contains({{0, 2}, {4, 8}}));
  EXPECT_FALSE(box.contains({{1}, {4}}));
}

TEST(Box, IsMovedToAnotherOrigin) {
  EXPECT_EQ((Box{{5, 7}, {6, 9}}).relative_to({5, 5}), (Box{{0, 2}, {1, 4}}));
}

Box random_box(std::mt19937& random, std::size_t rank) {
  std::uniform_int_distribution<Index> bound(0, 5);
  Box box{Shape(rank), Shape(rank)};
  for (std::size_t i = 0; i < rank; ++i) {
    box.begin[i] = bound(random);
    box.end[i] = bound(random);
    if (box.begin[i] > box.end[i]) std::swap(box.begin[i], box.end[i]);
  }
  return box;
}

bool has(const Box& box, Index x, Index y) {
  return box.begin[0] <= x && x < box.end[0] && box.begin[1] <= y && y < box.end[1];
}

TEST(Box, IntersectsElementByElement) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const Box a = random_box(random, 2);
    const Box b = random_box(random, 2);
    const Box common = a.intersect(b);
    std::uint64_t shared = 0;
    std::uint64_t of_b = 0;
    for (Index x = 0; x < 6; ++x) {
      for (Index y = 0; y < 6; ++y) {
        const bool both = has(a, x, y) && has(b, x, y);
        EXPECT_EQ(has(common, x, y), both) << a.to_string() << b.to_string();
        shared += both ? 1 : 0;
        of_b += has(b, x, y) ? 1 : 0;
      }
    }
    EXPECT_EQ(common.elements(), shared);
    EXPECT_EQ(common.empty(), shared == 0);
    EXPECT_EQ(a.contains(b), shared == of_b) << a.to_string() << b.to_string();
  }
}

/// The box as text, or the reason why there is none.
std::string sliced(std::string_view text, const Shape& shape) {
  const auto box = parse_slice(text, shape);
  if (box) return box->to_string();
  EXPECT_EQ(box.error().code(), Code::kInvalidArgument);
  return std::string(box.error().reason());
}

TEST(Slice, IsReadAgainstAShape) {
  struct Expected {
    const char* text;
    const char* box;
  };
  const Expected table[] = {
      {"", "[0:10, 0:20]"},          {":", "[0:10, 0:20]"},      {":,:", "[0:10, 0:20]"},
      {"3", "[3:4, 0:20]"},          {"-1", "[9:10, 0:20]"},     {"-10", "[0:1, 0:20]"},
      {"2:5", "[2:5, 0:20]"},        {"2:,:7", "[2:10, 0:7]"},   {":-1,-3:", "[0:9, 17:20]"},
      {"0:10,0:20", "[0:10, 0:20]"}, {"10:10", "[10:10, 0:20]"}, {"4:4,4:4", "[4:4, 4:4]"},
      {" 1 : 2 , 3 ", "[1:2, 3:4]"},
  };
  for (const Expected& row : table) EXPECT_EQ(sliced(row.text, {10, 20}), row.box) << row.text;
  EXPECT_EQ(sliced("", {}), "[]");
  EXPECT_EQ(sliced(":", {0}), "[0:0]");
}

TEST(Slice, IsRefusedWithAReason) {
  struct Expected {
    const char* text;
    const char* reason;
  };
  const Expected table[] = {
      {"a", "slice/syntax"},
      {"1.5", "slice/syntax"},
      {"1:2:3", "slice/syntax"},
      {"+1", "slice/syntax"},
      {",", "slice/syntax"},
      {"1,", "slice/syntax"},
      {",1", "slice/syntax"},
      {"1, ", "slice/syntax"},
      {"1 2", "slice/syntax"},
      {"- 1", "slice/syntax"},
      {"::", "slice/syntax"},
      {"-", "slice/syntax"},
      {"1,2,3", "slice/rank"},
      {":,:,:", "slice/rank"},
      {"10", "slice/range"},
      {"-11", "slice/range"},
      {"0:11", "slice/range"},
      {"-11:", "slice/range"},
      {"5:4", "slice/range"},
      {"-1:0", "slice/range"},
      {"99999999999999999999", "slice/range"},
      {":99999999999999999999", "slice/range"},
      {"0,20", "slice/range"},
      {"-9223372036854775808", "slice/range"},
  };
  for (const Expected& row : table) EXPECT_EQ(sliced(row.text, {10, 20}), row.reason) << row.text;
  EXPECT_EQ(sliced("0", {}), "slice/rank");
  EXPECT_EQ(sliced("0", {0}), "slice/range");
}

}  // namespace
}  // namespace cairn
