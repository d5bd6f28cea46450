// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/load/index_shardings.h"
#include "cairn/load/seen_path.h"
#include "cairn/manifest/names.h"
#include "cairn/testing/must.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::must;

ManifestArray array_of(const std::string& name, Shape shape,
                       std::optional<PartitionSpec> spec = {}) {
  ManifestArray array;
  array.path = KeyPath({name});
  array.stored.shape = std::move(shape);
  array.stored.dtype = DType::kFloat32;
  array.spec = std::move(spec);
  return array;
}

class Targets : public ::testing::Test {
 protected:
  Targets() {
    prefix_.name = "model";
    prefix_.manifest.layout = kZarr2Layout;
    prefix_.manifest.arrays = {array_of("saved", {8, 8}, PartitionSpec{{"x"}}),
                               array_of("other", {8, 8}, PartitionSpec{{"z"}}),
                               array_of("plain", {8, 8}), array_of("number", {})};
    options_.mesh = grid_;
  }

  Sharding on(const PartitionSpec& spec) const { return must(NamedSharding::make(grid_, spec)); }

  /// The sharding of each array as text: its spec, or "whole".
  std::vector<std::string> placed() const {
    std::vector<std::string> texts;
    for (const Sharding& sharding : must(load_shardings(prefix_, options_)))
      texts.push_back(sharding.named() ? sharding.named()->spec().to_string() : "whole");
    return texts;
  }

  Error refused() const { return load_shardings(prefix_, options_).error(); }

  void choose(std::vector<std::optional<ShardingWish>> wishes) {
    options_.choose_shardings = [wishes = std::move(wishes)](const OpenedPrefix&) {
      return Result<std::vector<std::optional<ShardingWish>>>(wishes);
    };
  }

  const Mesh grid_ = must(Mesh::over_ranks({{"x", 2}, {"y", 2}}, 1));
  OpenedPrefix prefix_;
  LoadOptions options_;
};

TEST_F(Targets, TheFirstThatSaysSomethingDecides) {
  options_.replicate = Replicate::kAll;
  EXPECT_THAT(placed(), ElementsAre("P('x')", "P()", "P()", "P()"));
  const auto rules = must(PartitionRules::make({{".", PartitionSpec{{}, {"y"}}}}));
  options_.partition_rules = &rules;
  EXPECT_THAT(placed(), ElementsAre("P(None, 'y')", "P(None, 'y')", "P(None, 'y')", "P()"));
  const ShardingTree shardings{{KeyPath({"saved"}), on({{"y"}})}, {KeyPath({"plain"}), Sharding()}};
  options_.shardings = &shardings;
  EXPECT_THAT(placed(), ElementsAre("P('y')", "P(None, 'y')", "whole", "P()"));
  choose({PartitionSpec{{}, {"x"}}, std::nullopt, on({{"x"}})});
  EXPECT_THAT(placed(), ElementsAre("P(None, 'x')", "P(None, 'y')", "P('x')", "P()"));
}

TEST_F(Targets, TheTemplateCountsWhereItLiesOnTheMesh) {
  const auto like = [](const Sharding& sharding) {
    return must(ShardedArray::make(DType::kFloat32, {8, 8}, sharding, {}));
  };
  const ShardedArray columns = like(on({{}, {"y"}}));
  const Mesh line = must(Mesh::over_ranks({{"x", 4}}, 1));
  const Sharding rows = must(NamedSharding::make(line, {{"x"}}));
  const ShardedArray elsewhere = like(rows);
  const auto sharding_of = [&](const ShardedArray& array) {
    return must(must(LoadTarget::make(prefix_, options_)).sharding_of(0, &array));
  };
  EXPECT_EQ(sharding_of(columns), columns.sharding());
  EXPECT_EQ(sharding_of(elsewhere), on({{"x"}}));
  options_.as_saved = false;
  options_.replicate = Replicate::kAll;
  EXPECT_EQ(sharding_of(columns), on({}));
  options_.mesh.reset();
  EXPECT_EQ(sharding_of(elsewhere), rows);
}

TEST_F(Targets, WhatNothingIsSaidAboutIsRefusedWithAllItsNames) {
  for (const auto replicate : {Replicate::kOnOneAxis, Replicate::kUnsharded}) {
    options_.replicate = replicate;
    const Error error = refused();
    EXPECT_EQ(error.reason(), "load/no-sharding");
    EXPECT_THAT(error.message(), HasSubstr("No sharding specified for 'other' on multi-axis mesh"));
    EXPECT_EQ(error.message().find("'plain'") == std::string::npos,
              replicate == Replicate::kUnsharded);
  }
  prefix_.manifest.arrays[1].spec = PartitionSpec();
  EXPECT_THAT(placed(), ElementsAre("P('x')", "P()", "P()", "P()"));
  prefix_.foreign = true;  // others do not say how arrays lay
  EXPECT_THAT(refused().to_string(),
              ::testing::AllOf(HasSubstr("'plain'"), ::testing::Not(HasSubstr("'number'"))));
  options_.mesh = must(Mesh::over_ranks({{"w", 4}}, 1));
  options_.replicate = Replicate::kOnOneAxis;
  EXPECT_THAT(placed(), ElementsAre("P()", "P()", "P()", "P()"));
}

TEST_F(Targets, FilesStayOffTheMeshIfToldSo) {
  options_.mesh_for_safetensors = false;
  options_.replicate = Replicate::kAll;
  EXPECT_THAT(placed(), ElementsAre("P('x')", "P()", "P()", "P()"));
  prefix_.manifest.layout = kSafetensorsLayout;
  EXPECT_THAT(placed(), ElementsAre("whole", "whole", "whole", "whole"));
  choose({PartitionSpec{{"y"}}});
  EXPECT_THAT(placed(), ElementsAre("P('y')", "whole", "whole", "whole"));
}

TEST_F(Targets, WishesAreChecked) {
  options_.replicate = Replicate::kAll;
  choose({PartitionSpec{{"y"}}});
  options_.mismatch_allowed = false;
  EXPECT_EQ(refused().reason(), "load/unnamed-leaves");
  EXPECT_THAT(refused().message(), HasSubstr("other, plain, number"));
  choose({PartitionSpec{{"nowhere"}}, PartitionSpec{{"y", "y"}}});
  EXPECT_EQ(refused().reason(), "sharding/unknown-axis");
  EXPECT_THAT(refused().to_string(),
              ::testing::AllOf(HasSubstr("leaf saved"), HasSubstr("leaf other")));
  options_.mesh.reset();
  EXPECT_EQ(refused().reason(), "load/no-mesh");
  options_.choose_shardings = {};
  const auto rules = must(PartitionRules::make({{".", PartitionSpec()}}));
  options_.partition_rules = &rules;
  EXPECT_EQ(refused().reason(), "load/no-mesh");
}

TEST_F(Targets, SeePathsWithAndWithoutThePrefix) {
  const auto seen = [&](std::vector<std::string> parts) {
    return seen_path(prefix_, KeyPath(std::move(parts)), options_).text();
  };
  EXPECT_EQ(seen({"a", "b"}), "a.b");
  EXPECT_EQ(seen({}), "model");
  options_.keys_with_prefix = true;
  EXPECT_EQ(seen({"a", "b"}), "model.a.b");
  EXPECT_EQ(seen({}), "model");
  // Another system's paths may begin with it.
  prefix_.name = "";
  EXPECT_EQ(seen({"model", "b"}), "model.b");
  options_.prefix = "model";
  EXPECT_EQ(seen({"model", "b"}), "model.b");
  EXPECT_EQ(seen({"a", "b"}), "model.a.b");
  options_.keys_with_prefix = false;
  EXPECT_EQ(seen({"model", "b"}), "b");
  EXPECT_EQ(seen({"model"}), "model");
  EXPECT_EQ(seen({"a", "b"}), "a.b");
}

}  // namespace
}  // namespace cairn
