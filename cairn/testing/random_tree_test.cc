// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/random_tree.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "cairn/base/utf8.h"
#include "cairn/tree/flatten.h"

namespace cairn::testing {
namespace {

struct Seen {
  std::set<TreeKind> kinds;
  std::set<DType> dtypes;
  std::set<std::size_t> ranks, value_types;
  bool empty_container = false, empty_dimension = false, number_key = false, odd_key = false;

  void look(const Tree& tree) {
    kinds.insert(tree.kind());
    if (tree.is_leaf()) return look(tree.leaf());
    empty_container =
        empty_container || (tree.children().empty() && tree.kind() != TreeKind::kNone);
    for (const auto& [key, child] : tree.children()) {
      number_key = number_key || (key.is_number() && tree.kind() == TreeKind::kDict);
      odd_key = odd_key || KeyPath({key.part()}).text() != key.part();
      look(child);
    }
  }

  void look(const Leaf& leaf) {
    if (const Value* value = std::get_if<Value>(&leaf)) {
      value_types.insert(value->index());
      return;
    }
    const auto& array = std::get<ShardedArray>(leaf);
    dtypes.insert(array.dtype());
    ranks.insert(array.shape().size());
    empty_dimension = empty_dimension || array.nbytes() == 0;
  }
};

TEST(RandomTree, CoversEverythingInAThousandSeeds) {
  Seen seen;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Tree tree = random_tree(seed);
    ASSERT_TRUE(flatten(tree)) << flatten(tree).error().to_string();
    seen.look(tree);
  }
  EXPECT_EQ(seen.kinds.size(), 8U);
  EXPECT_EQ(seen.dtypes.size(), all_dtypes().size());
  EXPECT_EQ(seen.ranks.size(), 7U);
  EXPECT_EQ(seen.value_types.size(), std::variant_size_v<Value>);
  EXPECT_TRUE(seen.empty_container && seen.empty_dimension && seen.number_key && seen.odd_key);
}

TEST(RandomTree, KeepsToItsOptions) {
  Seen seen;
  const RandomTreeOptions options = {.dtypes = {DType::kInt8},
                                     .max_rank = 2,
                                     .max_elements = 10,
                                     .max_depth = 2,
                                     .max_children = 3,
                                     .values = false,
                                     .odd_keys = false};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Tree tree = random_tree(seed, options);
    seen.look(tree);
    const auto leaves = flatten(tree);
    ASSERT_TRUE(leaves);
    for (const NamedLeaf& named : *leaves) {
      EXPECT_LE(named.path.parts().size(), 2U);
      EXPECT_LE(std::get<ShardedArray>(named.leaf).nbytes(), 10U);
    }
  }
  EXPECT_EQ(seen.dtypes, std::set{DType::kInt8});
  EXPECT_EQ(seen.ranks, (std::set<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(seen.value_types.empty());
  EXPECT_FALSE(seen.number_key || seen.odd_key);
}

TEST(RandomTree, IsTheSameForOneSeedAndAnotherForAnother) {
  EXPECT_EQ(difference(random_tree(5), random_tree(5)), "");
  EXPECT_NE(difference(random_tree(5), random_tree(6)), "");
}

TEST(RandomArray, HoldsOnlyBitsOfItsType) {
  Random random(1);
  for (const DType dtype : all_dtypes()) {
    const Array array = random_array(random, dtype, {300});
    if (item_size(dtype) > 1) continue;
    const int bits = dtype == DType::kBool ? 1 : bit_width(dtype);
    for (const std::byte element : array.bytes()) {
      ASSERT_EQ(std::to_integer<int>(element) >> bits, 0) << dtype_name(dtype);
    }
  }
}

TEST(RandomArray, HasNaNWithPayloads) {
  Random random(1);
  const Array array = random_array(random, DType::kFloat32, {300});
  std::vector<float> elements(300);
  std::memcpy(elements.data(), array.data(), array.nbytes());
  EXPECT_GT(std::count_if(elements.begin(), elements.end(), [](float x) { return std::isnan(x); }),
            3);
}

TEST(RandomText, IsUtf8) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) ASSERT_TRUE(is_utf8(random_text(random, 20)));
}

TEST(Difference, SeesEveryKindOfChange) {
  const auto number = [](int value) { return Tree(Value(Integer(value))); };
  const Tree base = Tree::dict({{"a", number(1)}, {"b", Tree::list({number(2)})}});
  EXPECT_EQ(difference(base, Tree::dict({{"b", Tree::list({number(2)})}, {"a", number(1)}})), "");
  const Tree others[] = {
      Tree::custom("", base.children()),
      Tree::dict({{"a", number(1)}}),
      Tree::dict({{"a", number(2)}, {"b", Tree::list({number(2)})}}),
      Tree::dict({{"a", Tree(Value(1.0))}, {"b", Tree::list({number(2)})}}),
      Tree::dict({{"a", number(1)}, {"c", Tree::list({number(2)})}}),
      Tree::dict({{"a", number(1)}, {"b", Tree::tuple({number(2)})}}),
      Tree::dict({{"a", Tree(Array())}, {"b", Tree::list({number(2)})}}),
  };
  for (const Tree& other : others) EXPECT_NE(difference(base, other), "");
  EXPECT_NE(difference(Tree::custom("A", {}), Tree::custom("B", {})), "");
  EXPECT_NE(difference(Tree::dict({{0, number(1)}}), Tree::dict({{"0", number(1)}})), "");
  const auto array = [](DType dtype, const Shape& shape) {
    return Tree(*Array::zeros(dtype, shape));
  };
  EXPECT_NE(difference(array(DType::kInt8, {2}), array(DType::kUint8, {2})), "");
  EXPECT_NE(difference(array(DType::kInt8, {2}), array(DType::kInt8, {2, 1})), "");
  auto ones = *Array::zeros(DType::kInt8, {2});
  ones.mutable_bytes()[1] = std::byte{1};
  EXPECT_NE(difference(array(DType::kInt8, {2}), Tree(ones)), "");
}

}  // namespace
}  // namespace cairn::testing
