// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/sharded_array.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

/// "ok", or the reason.
std::string outcome(const Result<ShardedArray>& array) {
  if (array) return "ok";
  EXPECT_EQ(array.error().code(), Code::kInvalidArgument);
  return std::string(array.error().reason());
}

Sharding halves() {
  return *Sharding::of_boxes({4, 4}, {{{{0, 0}, {2, 4}}, {0, 0}}, {{{2, 0}, {4, 4}}, {1, 1}}});
}

Array zeros(Shape shape, DType dtype = DType::kFloat32) {
  return *Array::zeros(dtype, std::move(shape));
}

TEST(ShardedArray, TakesAPlainArrayAsOneBox) {
  const Array plain = zeros({4, 4});
  const ShardedArray array = plain;
  EXPECT_TRUE(array.whole());
  EXPECT_EQ(array.array().data(), plain.data());
  EXPECT_EQ(array.nbytes(), 64U);
  EXPECT_EQ(array.sharding(), Sharding());
  EXPECT_TRUE(ShardedArray(zeros({})).whole());
  EXPECT_TRUE(ShardedArray(zeros({0, 3})).whole());
}

TEST(ShardedArray, HoldsTheMemoryOfItsOwnBoxes) {
  const auto array = ShardedArray::make(DType::kFloat32, {4, 4}, halves(), {{1, zeros({2, 4})}});
  ASSERT_TRUE(array);
  EXPECT_FALSE(array->whole());
  EXPECT_EQ(array->shards().size(), 1U);
  EXPECT_EQ(array->box_of(array->shards().front()), (Box{{2, 0}, {4, 4}}));
  EXPECT_EQ(array->nbytes(), 64U);
}

TEST(ShardedArray, MayHoldNothingHere) {
  const auto array = ShardedArray::make(DType::kFloat32, {4, 4}, halves(), {});
  ASSERT_TRUE(array);
  EXPECT_FALSE(array->whole());
}

TEST(ShardedArray, IsWholeInEveryReplica) {
  const Box whole = Box::whole({4});
  const auto array = ShardedArray::make(
      DType::kInt8, {4}, *Sharding::of_boxes({4}, {{whole, {0, 0}}, {whole, {1, 0}}}),
      {{0, zeros({4}, DType::kInt8)}, {1, zeros({4}, DType::kInt8)}});
  ASSERT_TRUE(array);
  EXPECT_TRUE(array->whole());
}

TEST(ShardedArray, RefusesMemoryThatDoesNotFitItsBox) {
  const auto with = [](Shard shard) {
    return outcome(ShardedArray::make(DType::kFloat32, {4, 4}, halves(), {std::move(shard)}));
  };
  EXPECT_EQ(with({0, zeros({2, 4})}), "ok");
  EXPECT_EQ(with({0, zeros({4, 2})}), "sharding/shape-mismatch");
  EXPECT_EQ(with({0, zeros({2, 4}, DType::kInt32)}), "sharding/dtype-mismatch");
  EXPECT_EQ(with({2, zeros({2, 4})}), "sharding/no-device");
}

TEST(ShardedArray, RefusesAShapeThatItsShardingDoesNotTake) {
  EXPECT_EQ(outcome(ShardedArray::make(DType::kInt8, {4}, halves(), {})), "sharding/other-shape");
  EXPECT_EQ(outcome(ShardedArray::make(DType::kInt8, {-1}, Sharding(), {})), "shape/negative");
}

TEST(ShardedArray, SharesItsStateWithCopies) {
  const ShardedArray array = zeros({4});
  const ShardedArray copy = array;
  EXPECT_EQ(&copy.shape(), &array.shape());
  EXPECT_EQ(&copy.shards(), &array.shards());
}

}  // namespace
}  // namespace cairn
