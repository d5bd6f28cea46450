// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/save/save_plan.h"

#include <random>

#include <gtest/gtest.h>

#include "cairn/checkpoint/load/load.h"
#include "cairn/checkpoint/save/save.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

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

}  // namespace
}  // namespace cairn
