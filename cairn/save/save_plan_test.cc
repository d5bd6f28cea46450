// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/save_plan.h"

#include <random>

#include <gtest/gtest.h>

#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/load_plan.h"
#include "cairn/manifest/names.h"
#include "cairn/save/save.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;

// Cuts every dimension at random multiples of a step, and makes the grid of boxes.
std::vector<Placement> random_grid(testing::Random& random, const Shape& shape, Index step) {
  std::vector<Box> boxes{Box::whole(shape)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<Index> cuts{0};
    for (Index at = step; at < shape[d]; at += step) {
      if (testing::below(random, 2) == 0) cuts.push_back(at);
    }
    cuts.push_back(shape[d]);
    std::vector<Box> finer;
    for (const Box& box : boxes) {
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        finer.push_back(box);
        finer.back().begin[d] = cuts[i];
        finer.back().end[d] = cuts[i + 1];
      }
    }
    boxes = std::move(finer);
  }
  std::vector<Placement> placements;
  for (const Box& box : boxes)
    placements.push_back({box, {static_cast<int>(placements.size()), 0}});
  return placements;
}

TEST(SavePlan, NoChunkIsSharedByTwoBoxes) {
  testing::Random random(3);
  int planned = 0;
  for (int round = 0; round < 500; ++round) {
    Shape shape;
    for (std::uint64_t d = testing::below(random, 4); d > 0; --d) {
      shape.push_back(static_cast<Index>(64 + testing::below(random, 200)));
    }
    const auto placements = random_grid(random, shape, 32);
    const std::uint64_t limit = 1 + testing::below(random, 1 << 20);
    const auto chunk = choose_chunk_shape(shape, *Sharding::of_boxes(shape, placements), 4, limit);
    if (!chunk) {
      ASSERT_EQ(chunk.error().reason(), "plan/uneven-cuts");
      continue;
    }
    ++planned;
    for (const Placement& placement : placements) {
      for (std::size_t d = 0; d < shape.size(); ++d) {
        ASSERT_EQ(placement.box.begin[d] % (*chunk)[d], 0);
        const Index end = placement.box.end[d];
        ASSERT_TRUE(end == shape[d] || end % (*chunk)[d] == 0);
      }
    }
  }
  EXPECT_GT(planned, 300);
}

TEST(SavePlan, ChunksStayUnderTheLimitAndNearIt) {
  struct Case {
    Shape shape;
    Shape expected;
  };
  const Case cases[] = {
      {{}, {}},
      {{0, 3}, {1, 3}},
      {{16, 1024}, {16, 1024}},
      {{32003, 4096}, {8001, 4096}},
      {{32, 8192, 8192}, {1, 4096, 8192}},
      {{67108879}, {22369627}},
  };
  for (const Case& test : cases) {
    const auto chunk = choose_chunk_shape(test.shape, {}, 2, 64 * kMiB);
    ASSERT_TRUE(chunk);
    EXPECT_EQ(*chunk, test.expected) << to_string(test.shape);
  }
}

TEST(SavePlan, RefusesCutsThatMakeTinyChunks) {
  const std::vector<Placement> placements{
      {{{0, 0}, {333, 1000}}, {}}, {{{333, 0}, {500, 1000}}, {}}, {{{500, 0}, {1000, 1000}}, {}}};
  const auto chunk =
      choose_chunk_shape({1000, 1000}, *Sharding::of_boxes({1000, 1000}, placements), 4, kMiB);
  ASSERT_FALSE(chunk);
  EXPECT_EQ(chunk.error().reason(), "plan/uneven-cuts");
  EXPECT_NE(chunk.error().message().find("safetensors"), std::string::npos);
}

TEST(SavePlan, WhoeverIsAloneCutsSmallBoxesTogether) {
  struct Case {
    const char* what;
    Shape shape;
    Index rows;  // of a box
    Shape expected;
  };
  const Case cases[] = {
      {"tiny boxes: one chunk", {64, 8}, 8, {64, 8}},
      {"uneven boxes: one chunk", {100, 8}, 33, {100, 8}},
      {"small boxes: chunks of 256 KiB for other meshes", {256, 512}, 32, {256, 256}},
      {"large boxes: as if there were others", {8192, 256}, 1024, {1024, 64}},
  };
  for (const Case& test : cases) {
    std::vector<Placement> placements;
    for (Index at = 0; at < test.shape[0]; at += test.rows) {
      placements.push_back({{{at, 0}, {std::min(at + test.rows, test.shape[0]), test.shape[1]}},
                            {static_cast<int>(placements.size()), 0}});
    }
    const auto sharding = must(Sharding::of_boxes(test.shape, placements));
    EXPECT_EQ(must(choose_chunk_shape(test.shape, sharding, 4, 64 * kMiB, true)), test.expected)
        << test.what;
  }
}

/// Bytes that all ranks together read, checksums included, for each that they need.
double read_per_needed(const Shape& shape, const Sharding& saved, const Sharding& loaded) {
  PlanOptions options;
  options.layout = kZarr2Layout;
  const auto planned = must(plan_array(KeyPath({"w"}), DType::kBfloat16, shape, saved, options));
  const std::uint64_t bytes = planned.stored.chunk_bytes();
  const std::uint64_t blocks = block_count(bytes, kBlockBytes) * planned.stored.chunk_count();
  const ManifestArray array{
      planned.path,
      planned.stored,
      {},
      must(ChunkSums::make(kBlockBytes,
                           std::vector<std::uint64_t>(planned.stored.chunk_count(), bytes),
                           std::vector<std::uint32_t>(blocks))),
      {}};
  std::uint64_t read = 0;
  std::uint64_t needed = 0;
  for (std::size_t at = 0; at < loaded.device_count(); ++at) {
    const LoadPlan plan = plan_load({{&array, loaded.box(at, shape)}}, true);
    read += plan.bytes;
    needed += plan.wanted_bytes;
  }
  return static_cast<double>(read) / static_cast<double>(needed);
}

TEST(SavePlan, OtherLayoutsReadLittleThatTheyDoNotNeed) {
  const auto on = [](const std::vector<MeshAxis>& axes, const PartitionSpec& spec) -> Sharding {
    return must(NamedSharding::make(must(Mesh::over_ranks(axes, 1)), spec));
  };
  const Sharding rows = on({{"x", 8}}, {{"x"}});
  const Sharding columns = on({{"x", 8}}, {{}, {"x"}});
  const Sharding both = on({{"x", 2}, {"y", 4}}, {{"x"}, {"y"}});
  const Sharding three = on({{"x", 3}}, {{}, {"x"}});
  struct Case {
    Shape shape;
    Sharding saved;
    Sharding loaded;
    double most;
  };
  const Case cases[] = {
      {{3072, 3072}, rows, rows, 1.0},     {{3072, 3072}, rows, columns, 1.0},
      {{3072, 3072}, columns, rows, 1.0},  {{3072, 3072}, rows, both, 1.0},
      {{3072, 3072}, both, columns, 1.0},  {{3072, 3072}, rows, three, 1.3},
      {{24576, 3072}, rows, columns, 1.0}, {{4096, 11008}, rows, columns, 1.0},
      {{24, 1536, 768}, rows, three, 1.5}, {{2048, 2048}, rows, columns, 2.0},
  };
  for (const Case& test : cases) {
    EXPECT_LE(read_per_needed(test.shape, test.saved, test.loaded), test.most)
        << to_string(test.shape) << " case " << &test - cases;
  }
}

TEST(SavePlan, NamesTheLeafOfATypeThatTheLayoutDoesNotHave) {
  Runtime runtime;
  testing::TempDir dir;
  const Tree tree = Tree::dict({{"q", *Array::zeros(DType::kUint4, {4})}});
  const auto saved = save_tree(tree, dir / "c", {}, runtime);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().reason(), "zarr2/dtype-unsupported");
  EXPECT_NE(saved.error().to_string().find("leaf q"), std::string::npos);
}

// Boxes of an array that this process holds in several pieces.
Tree sharded_tree(testing::Random& random, const Array& whole) {
  const auto placements = random_grid(random, whole.shape(), 8);
  std::vector<Shard> shards;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    shards.push_back({i, *whole.slice(placements[i].box).to_dense()});
  }
  const auto sharding = Sharding::of_boxes(whole.shape(), placements);
  return Tree::dict({{"w", *ShardedArray::make(whole.dtype(), whole.shape(), *sharding, shards)}});
}

TEST(SavePlan, ShardsAreSavedAsTheArrayTheyMake) {
  Runtime runtime;
  testing::Random random(11);
  for (int round = 0; round < 40; ++round) {
    testing::TempDir dir;
    const Array whole = testing::random_array(random, DType::kFloat32, {40, 24, 16});
    const Tree tree = sharded_tree(random, whole);
    SaveOptions save{.layout = std::string(round % 2 == 0 ? kZarr2Layout : kSafetensorsLayout)};
    save.chunk_bytes = 4000;
    if (round % 4 < 2) save.float_dtype = DType::kFloat64;
    const auto saved = save_tree(tree, dir / "c", save, runtime, "m");
    ASSERT_TRUE(saved) << saved.error().to_string();
    const auto loaded = load(dir / "c", {.dtype = DType::kFloat32}, runtime);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    // Through float64 and back nothing is lost but the bits of NaNs, which random bits contain.
    const auto back = load(dir / "c", {}, runtime);
    if (round % 4 >= 2) {
      ASSERT_EQ(testing::difference(back->tree, Tree::dict({{"w", whole}})), "");
    }
    EXPECT_EQ(loaded->report.cast.size(), round % 4 < 2 ? 1u : 0u);
  }
}

TEST(SavePlan, SmallShardsOfAProcessThatIsAloneAreOneChunk) {
  Runtime runtime;
  testing::Random random(12);
  for (int round = 0; round < 10; ++round) {
    testing::TempDir dir;
    const Array whole = testing::random_array(random, DType::kFloat32, {64, 8});
    ASSERT_TRUE(save_tree(sharded_tree(random, whole), dir / "c", {}, runtime));
    const auto opened = open_checkpoint(dir / "c", runtime);
    ASSERT_TRUE(opened) << opened.error().to_string();
    EXPECT_EQ(opened->prefixes.front().manifest.arrays.front().stored.chunk_count(), 1U);
  }
}

}  // namespace
}  // namespace cairn
