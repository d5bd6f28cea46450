// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/sharding_tree.h"

#include <gtest/gtest.h>

#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/tree/flatten.h"

namespace cairn {
namespace {

using testing::must;

class ShardingTrees : public ::testing::Test {
 protected:
  ShardingTrees() {
    testing::Random random(1);
    kernel_ = testing::random_array(random, DType::kFloat32, {8, 6});
    bias_ = testing::random_array(random, DType::kFloat32, {6});
    tree_ = Tree::dict({{"layer", Tree::dict({{"kernel", *kernel_}, {"bias", *bias_}})},
                        {"step", Value(Integer(3))}});
  }

  Sharding on_mesh(const PartitionSpec& spec) const {
    return must(NamedSharding::make(mesh_, spec));
  }

  const Mesh mesh_ = must(Mesh::over_ranks({{"x", 4}, {"y", 2}}, 8));
  const PartitionRules rules_ =
      must(PartitionRules::parse(R"([["layer/kernel", ["x", "y"]], [".*", []]])"));
  const KeyPath kernel_path_{{"layer", "kernel"}};
  const KeyPath bias_path_{{"layer", "bias"}};
  std::optional<Array> kernel_;
  std::optional<Array> bias_;
  Tree tree_ = Tree::none();
};

TEST_F(ShardingTrees, RulesSeePartsJoinedBySlashes) {
  const auto specs = must(match_partition_rules(rules_, tree_));
  EXPECT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs.at(kernel_path_), (PartitionSpec{{"x"}, {"y"}}));
  EXPECT_EQ(specs.at(bias_path_), PartitionSpec());
}

TEST_F(ShardingTrees, CutWholeArraysWithoutCopying) {
  const ShardingTree shardings{{kernel_path_, on_mesh({{"x"}, {"y"}})}};
  for (int rank = 0; rank < 8; ++rank) {
    const Tree cut = must(apply_sharding_tree(tree_, shardings, rank));
    for (const NamedLeaf& leaf : must(flatten(cut))) {
      const auto* array = std::get_if<ShardedArray>(&leaf.leaf);
      if (array == nullptr) continue;
      ASSERT_EQ(array->shards().size(), 1u);
      const Shard& shard = array->shards().front();
      const Array& whole = leaf.path == kernel_path_ ? *kernel_ : *bias_;
      EXPECT_EQ(shard.data.data(), whole.slice(array->box_of(shard)).data());
      EXPECT_EQ(shard.data.shape(), leaf.path == kernel_path_ ? (Shape{2, 3}) : (Shape{6}));
    }
  }
  const Tree part = must(apply_sharding_tree(tree_, shardings, 1));
  EXPECT_EQ(apply_sharding_tree(part, shardings, 1).error().reason(), "sharding/not-whole");
}

TEST_F(ShardingTrees, AreComparedWithTheTreeLeafByLeaf) {
  EXPECT_TRUE(
      validate_sharding_tree({{kernel_path_, on_mesh({{"x"}})}, {bias_path_, on_mesh({})}}, tree_));
  const auto wrong = validate_sharding_tree(
      {{kernel_path_, on_mesh({{}, {"x"}})}, {KeyPath({"nothing"}), on_mesh({})}}, tree_);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().reason(), "sharding/tree-mismatch");
  for (const char* const part :
       {"leaf layer.kernel:", "no sharding for leaf layer.bias", "no array for sharding nothing"}) {
    EXPECT_NE(wrong.error().message().find(part), std::string::npos) << part;
  }
}

TEST_F(ShardingTrees, WishesAreGivenOrComeFromTheRules) {
  const ShardingTree columns{{kernel_path_, on_mesh({{}, {"y"}})}};
  EXPECT_EQ(must(wished_specs(tree_, nullptr, nullptr, &mesh_)), SpecTree());
  EXPECT_EQ(must(wished_specs(tree_, &columns, nullptr, nullptr)),
            (SpecTree{{kernel_path_, PartitionSpec{{}, {"y"}}}}));
  EXPECT_EQ(must(wished_specs(tree_, &columns, &rules_, &mesh_)),
            (SpecTree{{kernel_path_, {{}, {"y"}}}, {bias_path_, {}}}));
  EXPECT_EQ(must(wished_specs(tree_, nullptr, &rules_, &mesh_)),
            (SpecTree{{kernel_path_, {{"x"}, {"y"}}}, {bias_path_, {}}}));
  const ShardingTree whole{{kernel_path_, Sharding()}};
  EXPECT_EQ(must(wished_specs(tree_, &whole, &rules_, nullptr)),
            (SpecTree{{bias_path_, PartitionSpec()}}));
}

TEST_F(ShardingTrees, WishesThatDoNotFitAreListed) {
  const std::map<KeyPath, Shape> arrays{{kernel_path_, {8, 6}}, {bias_path_, {6}}};
  const SpecWishes given{{KeyPath({"nothing"}), std::nullopt}, {bias_path_, PartitionSpec{{"x"}}}};
  const auto wrong = wished_specs(arrays, given, &rules_, &mesh_);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().reason(), "sharding/tree-mismatch");
  for (const char* const part : {"no array for sharding nothing", "leaf layer.bias:"})
    EXPECT_NE(wrong.error().message().find(part), std::string::npos) << part;
  const auto narrow = must(PartitionRules::make({{"kernel", PartitionSpec()}}));
  EXPECT_EQ(wished_specs(arrays, {}, &narrow, nullptr).error().reason(), "rules/no-match");
  EXPECT_EQ(
      wished_specs(arrays, {{bias_path_, PartitionSpec{{"z"}}}}, nullptr, &mesh_).error().reason(),
      "sharding/unknown-axis");
  const ShardingTree odd{{bias_path_, on_mesh({{"x"}})}};
  EXPECT_EQ(wished_specs(tree_, &odd, nullptr, nullptr).error().reason(), "sharding/tree-mismatch");
}

TEST_F(ShardingTrees, ShardAndGather) {
  const auto both =
      must(make_shard_and_gather_fns(mesh_, {{kernel_path_, {{"x"}}}, {bias_path_, {}}}));
  EXPECT_EQ(both.shard.at(kernel_path_), on_mesh({{"x"}}));
  EXPECT_EQ(both.gather.at(kernel_path_), Sharding());
  EXPECT_EQ(make_shard_and_gather_fns(mesh_, {{bias_path_, {{"z"}}}}).error().reason(),
            "sharding/unknown-axis");
}

}  // namespace
}  // namespace cairn
