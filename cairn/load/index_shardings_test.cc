// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/index_shardings.h"

#include <gtest/gtest.h>

#include "cairn/layout/open_checkpoint.h"
#include "cairn/save/save.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;

TEST(IndexShardings, ComeFromWhatACheckpointHas) {
  const Mesh mesh = must(Mesh::over_ranks({{"x", 4}, {"y", 2}}, 8));
  const PartitionRules rules =
      must(PartitionRules::parse(R"([["layer/kernel", ["x", "y"]], [".*", []]])"));
  const auto on_mesh = [&](const PartitionSpec& spec) -> Sharding {
    return must(NamedSharding::make(mesh, spec));
  };
  const KeyPath kernel({"layer", "kernel"});
  const KeyPath bias({"layer", "bias"});
  const Tree tree =
      Tree::dict({{"layer", Tree::dict({{"kernel", must(Array::zeros(DType::kFloat32, {8, 6}))},
                                        {"bias", must(Array::zeros(DType::kFloat32, {6}))}})},
                  {"step", Value(Integer(3))}});
  testing::TempDir dir;
  Runtime runtime;
  must(save_tree(tree, dir / "c", {}, runtime, "m"));
  const auto checkpoint = must(open_checkpoint(dir / "c", runtime));
  const auto by_rule =
      must(create_sharding_tree_from_index(checkpoint, mesh, {.partition_rules = &rules}));
  EXPECT_EQ(by_rule, (ShardingTree{{kernel, on_mesh({{"x"}, {"y"}})}, {bias, on_mesh({})}}));
  const auto refused = create_sharding_tree_from_index(checkpoint, mesh, {.spec = {{"x"}}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "sharding/uneven");
  EXPECT_NE(refused.error().to_string().find("leaf layer.bias"), std::string::npos);
}

}  // namespace
}  // namespace cairn
