// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/serialize_leaves.h"

#include <fstream>

#include <gtest/gtest.h>

#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"
#include "cairn/tree/flatten.h"

namespace cairn {
namespace {

using testing::must;

class SerializeLeaves : public ::testing::Test {
 protected:
  SerializeLeaves() {
    testing::Random random(1);
    for (const char* const name : {"a", "b", "c", "d", "e"})
      children_.emplace_back(name, testing::random_array(random, DType::kFloat32, {4, 4}));
  }

  Tree tree() const { return Tree::dict(children_); }
  static auto counting(int& commits) {
    return [&commits](const SaveReport&) -> Result<void> {
      ++commits;
      return {};
    };
  }
  bool has_index() const { return std::ifstream(dir_ / "c/tensorstore_index.json").good(); }

  testing::TempDir dir_;
  Runtime runtime_;
  std::vector<std::pair<Key, Tree>> children_;
};

TEST_F(SerializeLeaves, GoesThereAndBack) {
  int commits = 0;
  must(tree_serialize_leaves(dir_ / "c", tree(), {.committed = counting(commits)}, runtime_, "p"));
  EXPECT_EQ(commits, 1);
  EXPECT_TRUE(has_index());
  EXPECT_TRUE(std::ifstream(dir_ / "c/p/a/.zarray").good());
  const auto loaded = must(tree_deserialize_leaves(dir_ / "c", {.prefix = "p"}, runtime_));
  EXPECT_EQ(testing::difference(loaded.tree, tree()), "");
  EXPECT_EQ(tree_deserialize_leaves(dir_ / "c", {.prefix = "q"}, runtime_).error().reason(),
            "load/prefix-missing");
}

TEST_F(SerializeLeaves, ReplacesWhateverIsThere) {
  const Tree other = Tree::dict({{"other", Value(true)}});
  for (const Tree& saved : {other, tree()})
    must(tree_serialize_leaves(dir_ / "c", saved, {}, runtime_, "p"));
  EXPECT_EQ(testing::difference(must(load(dir_ / "c", {}, runtime_)).tree, tree()), "");
}

TEST_F(SerializeLeaves, LeavesTheIndexOutIfAsked) {
  must(tree_serialize_leaves(dir_ / "c", tree(), {.write_index = false}, runtime_, "p"));
  EXPECT_FALSE(has_index());
}

TEST_F(SerializeLeaves, DoesNotTellOfACommitThatFailed) {
  int commits = 0;
  EXPECT_FALSE(tree_serialize_leaves(dir_ / "c", tree(), {.committed = counting(commits)}, runtime_,
                                     "../x"));
  EXPECT_EQ(commits, 0);
}

TEST_F(SerializeLeaves, CallsBackForEachArrayInOrder) {
  must(tree_serialize_leaves(dir_ / "c", tree(), {}, runtime_, "p"));
  std::string keys;
  const LeafCallback note = [&](const KeyPath& path, const ShardedArray&) -> Result<Leaf> {
    keys += path.text();
    return Leaf(Value(Integer(1)));
  };
  const auto loaded = must(tree_deserialize_leaves(dir_ / "c", {.callback = note}, runtime_));
  EXPECT_EQ(keys, "abcde");
  EXPECT_EQ(loaded.report.loaded.size(), 5u);
  EXPECT_TRUE(std::holds_alternative<Value>(must(flatten(loaded.tree))[0].leaf));
}

TEST_F(SerializeLeaves, ReadsInBatches) {
  must(tree_serialize_leaves(dir_ / "c", tree(), {}, runtime_, "p"));
  int batches = 0;
  LoadOptions options;
  options.chunk_size = 2;
  options.progress = [&](std::uint64_t done, std::uint64_t) { batches += done == 0 ? 1 : 0; };
  EXPECT_EQ(testing::difference(must(load(dir_ / "c", options, runtime_)).tree, tree()), "");
  EXPECT_EQ(batches, 3);
}

TEST_F(SerializeLeaves, LoadsOntoAMesh) {
  must(tree_serialize_leaves(dir_ / "c", tree(), {}, runtime_, "p"));
  const Mesh mesh = must(Mesh::over_ranks({{"x", 2}, {"y", 2}}, 1));
  const auto refused = tree_deserialize_leaves(dir_ / "c", {.mesh = mesh}, runtime_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "load/no-sharding");
  EXPECT_NE(refused.error().to_string().find("leaf a"), std::string::npos);
  const PartitionRules rules = must(PartitionRules::parse(R"([[".*", ["x", "y"]]])"));
  const auto loaded = must(
      tree_deserialize_leaves(dir_ / "c", {.mesh = mesh, .partition_rules = &rules}, runtime_));
  for (const NamedLeaf& leaf : must(flatten(loaded.tree)))
    EXPECT_EQ(std::get<ShardedArray>(leaf.leaf).shards().size(), 4u);
}

}  // namespace
}  // namespace cairn
