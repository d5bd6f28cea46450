// SPDX-License-Identifier: Apache-2.0
// Saves by several ranks, as threads: what they write together is what one process reads.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "cairn/base/base64.h"
#include "cairn/base/sha256.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/sharded_leaves.h"
#include "cairn/testing/temp_dir.h"
#include "cairn/tree/flatten.h"

namespace cairn {
namespace {

using testing::must;
using testing::random_leaves;
using testing::random_mesh;
using testing::random_spec;
using testing::tree_of;
using testing::whole_tree;
using Leaf = testing::ShardedLeaf;

/// The reports of all ranks.
std::vector<Result<SaveReport>> save_by_ranks(int ranks, const std::string& path,
                                              const SaveOptions& options,
                                              const std::function<Tree(int)>& tree,
                                              const SaveInternals& internals = {}) {
  return testing::by_rank(ranks, [&](coord::Coordinator& coordinator) {
    Runtime runtime({.threads = 1, .coordinator = &coordinator});
    return save_checkpoint({{"model", tree(coordinator.rank())}}, path, options, runtime,
                           &internals);
  });
}

TEST(Ranks, WhatTheyWriteTogetherIsWhatOneProcessReads) {
  testing::Random random(5);
  for (int round = 0; round < 60; ++round) {
    const int ranks = std::array{2, 3, 4, 8}[testing::below(random, 4)];
    const Mesh mesh = random_mesh(random, ranks);
    const auto leaves = random_leaves(random, mesh);
    testing::TempDir dir;
    SaveOptions options{.layout = std::string(round % 2 == 0 ? kZarr2Layout : kSafetensorsLayout)};
    options.chunk_bytes = 1 + testing::below(random, 4000);
    options.shard_size = 1 + testing::below(random, 100'000);
    options.enable_compression = round % 4 == 0;
    const auto reports =
        save_by_ranks(ranks, dir / "c", options, [&](int rank) { return tree_of(leaves, rank); });
    std::uint64_t written = 0;
    for (const auto& report : reports) {
      ASSERT_TRUE(report) << report.error().to_string();
      written += report->written_bytes;
    }
    EXPECT_EQ(written, reports[0]->stored_bytes) << "each byte is written once";
    Runtime runtime;
    const auto loaded = load(dir / "c", {}, runtime);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    EXPECT_EQ(testing::difference(loaded->tree, whole_tree(leaves)), "");
    const auto verified = verify(must(open_checkpoint(dir / "c", runtime)), {}, runtime);
    ASSERT_TRUE(verified);
    EXPECT_TRUE(verified->damages.empty());
    if (HasFailure()) return;
  }
}

/// What a rank got is what it should hold of the whole.
void expect_parts(const Tree& loaded, const std::vector<Leaf>& leaves, int rank) {
  for (const NamedLeaf& found : must(flatten(loaded))) {
    const auto* array = std::get_if<ShardedArray>(&found.leaf);
    if (array == nullptr) continue;
    const auto leaf = std::ranges::find(leaves, found.path.text(), &Leaf::name);
    ASSERT_NE(leaf, leaves.end());
    EXPECT_EQ(array->sharding(), leaf->sharding);
    const auto held = leaf->sharding.holdings(array->shape(), rank);
    EXPECT_EQ(array->shards().size(), held.size());
    for (const Shard& shard : array->shards()) {
      const Array expected = must(leaf->whole.slice(array->box_of(shard)).to_dense());
      EXPECT_TRUE(std::ranges::equal(shard.data.bytes(), expected.bytes())) << found.path.text();
    }
  }
}

TEST(Ranks, LoadOntoAnyOtherLayout) {
  testing::Random random(15);
  for (int round = 0; round < 40; ++round) {
    const int savers = std::array{1, 2, 3, 8}[testing::below(random, 4)];
    const Mesh from = random_mesh(random, savers);
    auto leaves = random_leaves(random, from);
    testing::TempDir dir;
    SaveOptions options{.layout = std::string(round % 2 == 0 ? kZarr2Layout : kSafetensorsLayout)};
    options.chunk_bytes = 1 + testing::below(random, 4000);
    options.enable_compression = round % 4 == 0;
    for (const auto& report : save_by_ranks(savers, dir / "c", options,
                                            [&](int rank) { return tree_of(leaves, rank); })) {
      ASSERT_TRUE(report) << report.error().to_string();
    }
    const int loaders = std::array{1, 2, 4, 3}[testing::below(random, 4)];
    const Mesh to = random_mesh(random, loaders);
    ShardingTree shardings;
    for (Leaf& leaf : leaves) {
      leaf.sharding = must(NamedSharding::make(to, random_spec(random, to, leaf.whole.shape())));
      shardings.emplace(KeyPath({leaf.name}), leaf.sharding);
    }
    testing::run_ranks(loaders, [&](coord::Coordinator& coordinator) {
      Runtime runtime({.threads = 1, .coordinator = &coordinator});
      const auto loaded = load(dir / "c", {.shardings = &shardings}, runtime);
      ASSERT_TRUE(loaded) << loaded.error().to_string();
      expect_parts(loaded->tree, leaves, coordinator.rank());
    });
    if (HasFailure()) return;
  }
}

TEST(Ranks, LoadByRulesAndAsItWasSaved) {
  testing::Random random(16);
  const Mesh mesh = must(Mesh::over_ranks({{"x", 2}, {"y", 2}}, 4));
  const Sharding rows = must(NamedSharding::make(mesh, {{"x"}}));
  const Sharding columns = must(NamedSharding::make(mesh, {{}, {"y"}}));
  std::vector<Leaf> leaves{{"kernel", testing::random_array(random, DType::kFloat32, {8, 6}), rows},
                           {"bias", testing::random_array(random, DType::kFloat32, {8, 6}), rows}};
  testing::TempDir dir;
  for (const auto& report :
       save_by_ranks(4, dir / "c", {}, [&](int rank) { return tree_of(leaves, rank); })) {
    ASSERT_TRUE(report) << report.error().to_string();
  }
  const auto load_all = [&](const LoadOptions& options) {
    testing::run_ranks(4, [&](coord::Coordinator& coordinator) {
      Runtime runtime({.threads = 1, .coordinator = &coordinator});
      const auto loaded = load(dir / "c", options, runtime);
      ASSERT_TRUE(loaded) << loaded.error().to_string();
      expect_parts(loaded->tree, leaves, coordinator.rank());
    });
  };
  load_all({.mesh = mesh});
  const PartitionRules rules =
      must(PartitionRules::parse(R"([["^k", ["x"]], [".*", [null, "y"]]])"));
  leaves[1].sharding = columns;
  load_all({.mesh = mesh, .partition_rules = &rules});
  const Tree like =
      Tree::dict({{"kernel", Tree(must(ShardedArray::make(DType::kFloat32, {8, 6}, columns, {})))},
                  {"bias", Tree(must(ShardedArray::make(DType::kFloat32, {8, 6}, columns, {})))}});
  leaves[0].sharding = columns;
  load_all({.like = &like});
}

TEST(Ranks, LoadWholeArraysOnEveryRankUnlessTold) {
  testing::Random random(18);
  const Tree tree =
      Tree::dict({{"small", testing::random_array(random, DType::kFloat32, {8, 6})},
                  {"large", testing::random_array(random, DType::kFloat32, {300, 100})}});
  testing::TempDir dir;
  for (const auto& report : save_by_ranks(3, dir / "c", {}, [&](int) { return tree; }))
    ASSERT_TRUE(report) << report.error().to_string();
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    Runtime runtime({.threads = 1, .coordinator = &coordinator});
    const auto loaded = load(dir / "c", {}, runtime);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    EXPECT_EQ(testing::difference(loaded->tree, tree), "");
    const auto filled = load(dir / "c", {.like = &loaded->tree, .fill = true}, runtime);
    ASSERT_TRUE(filled) << filled.error().to_string();
    EXPECT_EQ(testing::difference(filled->tree, tree), "");
  });
}

TEST(Ranks, AnErrorOfOneIsEverybodys) {
  testing::Random random(17);
  const Mesh mesh = must(Mesh::over_ranks({{"x", 4}}, 4));
  const Sharding rows = must(NamedSharding::make(mesh, {{"x"}}));
  const std::vector<Leaf> leaves{
      {"w", testing::random_array(random, DType::kFloat32, {8, 6}), rows}};
  testing::TempDir dir;
  for (const auto& report :
       save_by_ranks(4, dir / "c", {}, [&](int rank) { return tree_of(leaves, rank); })) {
    ASSERT_TRUE(report) << report.error().to_string();
  }
  testing::write_file(dir / "c/model/w/3.0", std::string(48, 'x'));
  ShardingTree shardings{{KeyPath({"w"}), rows}};
  testing::run_ranks(4, [&](coord::Coordinator& coordinator) {
    Runtime runtime({.threads = 1, .coordinator = &coordinator});
    const auto loaded = load(dir / "c", {.shardings = &shardings}, runtime);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), Code::kCorrupt);
    EXPECT_NE(loaded.error().to_string().find("rank 3"), std::string::npos);
    EXPECT_NE(loaded.error().to_string().find("leaf w"), std::string::npos);
  });
}

TEST(Ranks, OneThatCannotOpenTheCheckpointIsNamed) {
  testing::TempDir dir;
  Runtime alone;
  must(save_tree(Tree::dict({{"step", Value(Integer(1))}}), dir / "c", {}, alone));
  for (const int culprit : {0, 1}) {
    testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
      testing::LossyFileSystem empty;
      Runtime runtime({.threads = 1,
                       .file_system = coordinator.rank() == culprit ? &empty : nullptr,
                       .coordinator = &coordinator});
      const auto loaded = load(dir / "c", {}, runtime);
      ASSERT_FALSE(loaded);
      EXPECT_EQ(loaded.error().code(), Code::kNotFound) << loaded.error().to_string();
      EXPECT_NE(loaded.error().to_string().find("rank " + std::to_string(culprit)),
                std::string::npos);
    });
  }
}

TEST(Ranks, LongRunsOfATensorAreWrittenInPlace) {
  testing::Random random(6);
  const Mesh mesh = must(Mesh::over_ranks({{"x", 4}}, 4));
  const Sharding rows = must(NamedSharding::make(mesh, PartitionSpec({{"x"}})));
  const std::vector<Leaf> leaves{
      {"long", testing::random_array(random, DType::kFloat32, {8, 400'000}), rows},
      {"all", testing::random_array(random, DType::kInt8, {3'000'001}),
       must(NamedSharding::make(mesh, PartitionSpec()))}};
  testing::TempDir dir;
  const auto reports = save_by_ranks(4, dir / "c", {.layout = std::string(kSafetensorsLayout)},
                                     [&](int rank) { return tree_of(leaves, rank); });
  for (const auto& report : reports) ASSERT_TRUE(report) << report.error().to_string();
  for (const auto& report : reports) EXPECT_GE(report->written_bytes, 3'200'000u);
  Runtime runtime;
  EXPECT_EQ(testing::difference(must(load(dir / "c", {}, runtime)).tree, whole_tree(leaves)), "");
}

TEST(Ranks, SmallLeavesReachTheMemoryOfEveryDevice) {
  testing::Random random(19);
  const Mesh mesh = must(Mesh::over_ranks({{"x", 4}}, 2));
  const Sharding everywhere = must(NamedSharding::make(mesh, PartitionSpec()));
  const Array whole = testing::random_array(random, DType::kFloat32, {8});
  testing::TempDir dir;
  Runtime alone;
  must(save_tree(Tree::dict({{"w", whole}}), dir / "c", {}, alone, "model"));
  testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
    Runtime runtime({.threads = 1, .coordinator = &coordinator});
    std::vector<Shard> shards;
    for (std::size_t at = 0; at < 4; ++at) {
      if (everywhere.device(at).rank == coordinator.rank())
        shards.push_back({at, must(Array::zeros(DType::kFloat32, {8}))});
    }
    const Tree like = Tree::dict(
        {{"w", Tree(must(ShardedArray::make(DType::kFloat32, {8}, everywhere, shards)))}});
    const auto loaded = load(dir / "c", {.like = &like, .fill = true}, runtime);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    EXPECT_EQ(shards.size(), 2u);
    for (const Shard& shard : shards)
      EXPECT_TRUE(std::ranges::equal(shard.data.bytes(), whole.bytes()));
  });
}

TEST(Ranks, ThatLoadOtherLeavesAreTold) {
  testing::Random random(20);
  const Tree tree = Tree::dict({{"a", testing::random_array(random, DType::kInt8, {9})},
                                {"b", testing::random_array(random, DType::kInt8, {9})}});
  testing::TempDir dir;
  Runtime alone;
  must(save_tree(tree, dir / "c", {}, alone, "model"));
  testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
    Runtime runtime({.threads = 1, .coordinator = &coordinator});
    const KeyPath key({coordinator.rank() == 0 ? "a" : "b"});
    const auto loaded = load(dir / "c", {.keys = {key}}, runtime);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().reason(), "load/ranks-disagree");
  });
}

/// All digests that an array should have, found from the whole of it.
std::string expected_digests(const ManifestArray& array, const Array& whole) {
  if (!array.sha256.empty()) return sha256_hex(whole.bytes());
  std::string text;
  std::uint64_t begin = 0;
  for (const PieceDigest& piece : array.pieces) {
    const Array flat = must(whole.reshaped({static_cast<Index>(whole.elements())}));
    const Array cells =
        array.stored.one_object
            ? flat.slice({{static_cast<Index>(begin)}, {static_cast<Index>(piece.end)}})
            : must(whole.slice(array.stored.chunk_box(piece.end - 1)).to_dense());
    text += sha256_hex(cells.bytes());
    begin = piece.end;
  }
  return text;
}

std::string found_digests(const ManifestArray& array) {
  std::string text = array.sha256;
  for (const PieceDigest& piece : array.pieces) text += encode_hex(piece.sha256);
  return text;
}

TEST(Ranks, HashTogetherWhatIsAskedForAndFindWhatIsNotAsItWas) {
  testing::Random random(22);
  for (int round = 0; round < 24; ++round) {
    const int ranks = std::array{2, 3, 4}[testing::below(random, 3)];
    const Mesh mesh = random_mesh(random, ranks);
    auto leaves = random_leaves(random, mesh);
    // Runs that are long enough to be written in place.
    const Mesh line = must(Mesh::over_ranks({{"x", ranks}}, ranks));
    leaves.push_back({"long", testing::random_array(random, DType::kInt8, {ranks, 2'000'001}),
                      must(NamedSharding::make(line, {{"x"}}))});
    SaveOptions options{.layout = std::string(round % 2 == 0 ? kZarr2Layout : kSafetensorsLayout)};
    options.chunk_bytes = 1000 + testing::below(random, 1 << 20);
    options.enable_compression = round % 4 == 0;
    options.enable_validation = true;
    testing::TempDir dir;
    for (const auto& report :
         save_by_ranks(ranks, dir / "c", options, [&](int rank) { return tree_of(leaves, rank); },
                       {.hash_chunks = round % 3 == 0}))
      ASSERT_TRUE(report) << report.error().to_string();
    Runtime runtime;
    auto checkpoint = must(open_checkpoint(dir / "c", runtime));
    bool in_pieces = false;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      ManifestArray& array = checkpoint.prefixes[0].manifest.arrays[i];
      const auto leaf = std::ranges::find(leaves, array.path.text(), &Leaf::name);
      EXPECT_EQ(found_digests(array), expected_digests(array, leaf->whole)) << leaf->name;
      EXPECT_TRUE(leaf->whole.elements() == 0 || found_digests(array) != "") << leaf->name;
      in_pieces |= !array.pieces.empty();
    }
    ASSERT_TRUE(in_pieces);
    must(load(checkpoint, {.validate = true}, runtime));
    EXPECT_TRUE(must(verify(checkpoint, {}, runtime)).damages.empty());
    auto& arrays = checkpoint.prefixes[0].manifest.arrays;
    const auto hashed = std::ranges::find_if(
        arrays, [](const ManifestArray& array) { return !array.pieces.empty(); });
    hashed->pieces.back().sha256[31] ^= std::byte{1};
    const auto loaded = load(checkpoint, {.validate = true}, runtime);
    EXPECT_EQ(testing::reason(loaded), "load/sha256");
    const auto damages = must(verify(checkpoint, {}, runtime)).damages;
    ASSERT_EQ(damages.size(), 1u);
    EXPECT_EQ(damages[0].reason, "load/sha256");
    EXPECT_EQ(damages[0].key, hashed->path.text());
    if (HasFailure()) return;
  }
}

TEST(Ranks, ValidateAllOfWhatOneOfThemLoadsByItself) {
  testing::Random random(21);
  const Tree tree = Tree::dict({{"a", testing::random_array(random, DType::kInt8, {9})},
                                {"b", testing::random_array(random, DType::kInt8, {9})}});
  testing::TempDir dir;
  Runtime alone;
  must(save_tree(tree, dir / "c", {.enable_validation = true}, alone, "model"));
  auto checkpoint = must(open_checkpoint(dir / "c", alone));
  for (ManifestArray& array : checkpoint.prefixes[0].manifest.arrays)
    array.sha256 = std::string(64, '0');
  for (const char* const key : {"a", "b"}) {
    testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
      Runtime runtime({.threads = 1, .coordinator = &coordinator});
      const auto loaded = load(checkpoint, {.keys = {KeyPath({key})}, .validate = true}, runtime);
      ASSERT_FALSE(loaded);
      EXPECT_EQ(loaded.error().reason(), "load/sha256");
    });
  }
}

}  // namespace
}  // namespace cairn
