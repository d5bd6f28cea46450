// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/array.h"

#include <cstring>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace cairn {
namespace {

/// Bytes 0, 1, 2, ... as an array of uint8.
Array counting(Shape shape) {
  Array array = *Array::allocate(DType::kUint8, std::move(shape));
  for (std::size_t i = 0; i < array.nbytes(); ++i) {
    array.mutable_bytes()[i] = static_cast<std::byte>(i);
  }
  return array;
}

std::vector<int> values(const Array& array) {
  const Array dense = *array.to_dense();
  std::vector<int> all;
  for (const std::byte byte : dense.bytes()) all.push_back(std::to_integer<int>(byte));
  return all;
}

/// "ok", or the reason.
std::string outcome(const Result<Array>& array) {
  return array ? "ok" : std::string(array.error().reason());
}

Buffer zeros(std::size_t size) { return *Buffer::zeros(size); }

TEST(Strides, AreThoseOfDenseArrays) {
  EXPECT_EQ(dense_strides({2, 3, 4}, 2), (Strides{24, 8, 2}));
  EXPECT_EQ(fortran_strides({2, 3, 4}, 2), (Strides{2, 4, 12}));
  EXPECT_EQ(dense_strides({}, 8), (Strides{}));
  EXPECT_EQ(dense_strides({2, 0, 4}, 1), (Strides{4, 4, 1}));
}

TEST(Array, IsEmptyByDefault) {
  const Array array;
  EXPECT_EQ(array.shape(), (Shape{0}));
  EXPECT_EQ(array.nbytes(), 0U);
  EXPECT_TRUE(array.dense());
  EXPECT_TRUE(array.bytes().empty());
}

TEST(Array, AllocatesScalarsAndEmptyShapes) {
  const Array scalar = *Array::zeros(DType::kComplex128, {});
  EXPECT_EQ(scalar.elements(), 1U);
  EXPECT_EQ(scalar.nbytes(), 16U);
  const Array empty = *Array::allocate(DType::kFloat32, {3, 0, 5});
  EXPECT_EQ(empty.elements(), 0U);
  EXPECT_TRUE(empty.dense());
}

TEST(Array, StartsWithZerosWhereAsked) {
  const Array array = *Array::zeros(DType::kInt32, {100});
  for (const std::byte byte : array.bytes()) EXPECT_EQ(byte, std::byte{0});
}

TEST(Array, RefusesImpossibleShapes) {
  constexpr Index kMost = std::numeric_limits<Index>::max();
  EXPECT_EQ(outcome(Array::allocate(DType::kUint8, {-1})), "shape/negative");
  EXPECT_EQ(outcome(Array::allocate(DType::kUint8, {kMost, kMost})), "shape/overflow");
  EXPECT_EQ(outcome(Array::allocate(DType::kInt16, {kMost})), "shape/overflow");
  EXPECT_EQ(outcome(Array::zeros(DType::kComplex128, {kMost / 8})), "shape/overflow");
  EXPECT_EQ(outcome(Array::allocate(DType::kUint8, Shape(kMaxRank + 1, 1))), "shape/rank");
}

TEST(Array, SaysThatMemoryIsShort) {
  const auto array = Array::allocate(DType::kUint8, {Index{1} << 60});
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().code(), Code::kResourceExhausted);
}

TEST(Array, WrapsExactlyAsManyBytesAsItTakes) {
  EXPECT_EQ(outcome(Array::wrap(DType::kFloat32, {2, 3}, zeros(24))), "ok");
  EXPECT_EQ(outcome(Array::wrap(DType::kFloat32, {2, 3}, zeros(23))), "array/size-mismatch");
  EXPECT_EQ(outcome(Array::wrap(DType::kFloat32, {2, 3}, zeros(25))), "array/size-mismatch");
  EXPECT_EQ(outcome(Array::wrap(DType::kFloat32, {0}, Buffer())), "ok");
}

TEST(Array, WrapsStridesThatStayInside) {
  struct Expected {
    Shape shape;
    Strides strides;
    std::size_t offset;
    const char* outcome;
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Expected table[] = {
      {{3, 4}, {4, 1}, 0, "ok"},
      {{3, 4}, {4, 1}, 1, "array/out-of-bounds"},
      {{3, 4}, {1, 3}, 0, "ok"},
      {{3, 4}, {-4, 1}, 8, "ok"},
      {{3, 4}, {-4, 1}, 7, "array/out-of-bounds"},
      {{3, 4}, {-4, -1}, 11, "ok"},
      {{3, 4}, {0, 0}, 11, "ok"},
      {{3, 4}, {0, 0}, 12, "array/out-of-bounds"},
      {{12}, {1}, 0, "ok"},
      {{13}, {1}, 0, "array/out-of-bounds"},
      {{}, {}, 11, "ok"},
      {{}, {}, 12, "array/out-of-bounds"},
      {{0, 4}, {1000, 1000}, 12, "ok"},
      {{0, 4}, {1, 1}, 13, "array/out-of-bounds"},
      {{1, 12}, {kMost, 1}, 0, "ok"},
      {{3}, {kMost}, 0, "array/out-of-bounds"},
      {{2, 2}, {kMost, kMost}, 0, "array/out-of-bounds"},
      {{2}, {std::numeric_limits<std::int64_t>::min()}, 0, "array/out-of-bounds"},
      {{3, 4}, {4}, 0, "array/out-of-bounds"},
  };
  for (const Expected& row : table) {
    EXPECT_EQ(
        outcome(Array::wrap_strided(DType::kUint8, row.shape, row.strides, zeros(12), row.offset)),
        row.outcome)
        << to_string(row.shape) << " " << to_string(row.strides) << " " << row.offset;
  }
}

TEST(Array, ReadsThroughAnyStrides) {
  const Array array = counting({12});
  const Array turned = *Array::wrap_strided(DType::kUint8, {2, 3}, {-1, 4}, array.buffer(), 2);
  EXPECT_FALSE(turned.dense());
  EXPECT_EQ(values(turned), (std::vector<int>{2, 6, 10, 1, 5, 9}));
}

TEST(Array, IsDenseWhateverTheStridesOfSingleElements) {
  const Array one = *Array::wrap_strided(DType::kUint8, {1, 4, 1}, {-7, 1, 99}, zeros(4));
  EXPECT_TRUE(one.dense());
  EXPECT_FALSE(Array::wrap_strided(DType::kUint8, {2, 2}, {1, 2}, zeros(4))->dense());
  EXPECT_FALSE(Array::wrap_strided(DType::kUint8, {2, 2}, {3, 1}, zeros(5))->dense());
}

TEST(Array, SharesMemoryWithItsSlices) {
  Array array = counting({3, 4});
  const Array part = array.slice({{1, 1}, {3, 3}});
  EXPECT_EQ(values(part), (std::vector<int>{5, 6, 9, 10}));
  array.mutable_bytes()[5] = std::byte{77};
  EXPECT_EQ(values(part), (std::vector<int>{77, 6, 9, 10}));
  EXPECT_EQ(values(part.slice({{1, 0}, {2, 2}})), (std::vector<int>{9, 10}));
}

TEST(Array, SlicesToNothingWithoutLeavingItsBuffer) {
  const Array wide = *Array::wrap_strided(DType::kUint8, {2, 3}, {100, 1}, zeros(103));
  const Array nothing = wide.slice({{2, 0}, {2, 3}});
  EXPECT_EQ(nothing.shape(), (Shape{0, 3}));
  EXPECT_EQ(nothing.data(), wide.data());
}

TEST(Array, CopiesOnlyWhatIsNotDense) {
  const Array array = counting({3, 4});
  EXPECT_EQ(array.to_dense()->data(), array.data());
  const Array column = array.slice({{0, 1}, {3, 2}});
  const Array copy = *column.to_dense();
  EXPECT_NE(copy.data(), column.data());
  EXPECT_TRUE(copy.dense());
  EXPECT_EQ(values(copy), (std::vector<int>{1, 5, 9}));
}

TEST(Array, TakesAnotherShapeOfTheSameSize) {
  const Array array = counting({3, 4});
  const Array other = *array.reshaped({2, 6, 1});
  EXPECT_EQ(other.data(), array.data());
  EXPECT_EQ(other.strides(), (Strides{6, 1, 1}));
  EXPECT_EQ(values(*array.slice({{1, 0}, {3, 4}}).reshaped({8})),
            (std::vector<int>{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(outcome(array.reshaped({13})), "array/size-mismatch");
  EXPECT_EQ(outcome(array.reshaped({-12})), "shape/negative");
  EXPECT_EQ(outcome(array.slice({{0, 0}, {3, 2}}).reshaped({6})), "array/not-dense");
}

TEST(CopyArray, RefusesArraysThatDiffer) {
  const Array from = *Array::zeros(DType::kFloat32, {2, 3});
  Array other_shape = *Array::zeros(DType::kFloat32, {3, 2});
  Array other_dtype = *Array::zeros(DType::kInt32, {2, 3});
  EXPECT_EQ(copy_array(from, other_shape).error().reason(), "array/shape-mismatch");
  EXPECT_EQ(copy_array(from, other_dtype).error().reason(), "array/dtype-mismatch");
}

TEST(CopyArray, CopiesIntoAPart) {
  const Array from = *Array::wrap(DType::kUint8, {2, 2}, Buffer::own("abcd"));
  Array whole = *Array::wrap(DType::kUint8, {3, 3}, Buffer::own("........."));
  Array part = whole.slice({{1, 1}, {3, 3}});
  ASSERT_TRUE(copy_array(from, part));
  EXPECT_EQ(as_text(whole.bytes()), "....ab.cd");
}

}  // namespace
}  // namespace cairn
