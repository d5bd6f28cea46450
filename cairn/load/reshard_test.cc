// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/reshard.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "cairn/testing/must.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/sharded_leaves.h"

namespace cairn {
namespace {

using testing::must;
using testing::part_of;

Sharding random_sharding(testing::Random& random, int ranks, const Shape& shape) {
  if (testing::below(random, 5) == 0) return {};
  const Mesh mesh = testing::random_mesh(random, ranks);
  return must(NamedSharding::make(mesh, testing::random_spec(random, mesh, shape)));
}

/// What this rank has is what it should hold of the whole.
void expect_held(const ShardedArray& array, const Array& whole, const Sharding& sharding,
                 int rank) {
  EXPECT_EQ(array.sharding(), sharding);
  const bool unsharded = sharding == Sharding();
  EXPECT_EQ(array.shards().size(), unsharded ? 1 : sharding.holdings(whole.shape(), rank).size());
  for (const Shard& shard : array.shards()) {
    const Array dense = must(shard.data.to_dense());
    const Array expected = must(whole.slice(array.box_of(shard)).to_dense());
    EXPECT_TRUE(std::ranges::equal(dense.bytes(), expected.bytes()))
        << array.box_of(shard).to_string();
  }
}

TEST(Reshard, GivesEveryRankItsBoxesOfTheSameArray) {
  testing::Random random(51);
  for (int round = 0; round < 200; ++round) {
    const int ranks = std::array{1, 2, 3, 4, 6}[testing::below(random, 5)];
    Shape shape;
    for (std::uint64_t d = testing::below(random, 4); d > 0; --d)
      shape.push_back(static_cast<Index>(12 * testing::below(random, 3)));
    const Array whole = testing::random_array(random, DType::kInt16, shape);
    const Sharding from = random_sharding(random, ranks, shape);
    const Sharding to = random_sharding(random, ranks, shape);
    const ReshardOptions options{.memory_limit = 1 + testing::below(random, 2000)};
    testing::run_ranks(ranks, [&](coord::Coordinator& coordinator) {
      Runtime runtime({.threads = 1, .coordinator = &coordinator});
      const auto moved = reshard(part_of(whole, from, coordinator.rank()), to, runtime, options);
      ASSERT_TRUE(moved) << moved.error().to_string();
      expect_held(*moved, whole, to, coordinator.rank());
    });
    if (HasFailure()) return;
  }
}

TEST(Reshard, CopiesAndTellsNothingWhereItIsThereAlready) {
  testing::Random random(52);
  const Mesh mesh = must(Mesh::over_ranks({{"x", 2}, {"y", 2}}, 2));
  const Sharding rows = must(NamedSharding::make(mesh, {{"x"}}));
  const Sharding cells = must(NamedSharding::make(mesh, {{"x"}, {"y"}}));
  const Array whole = testing::random_array(random, DType::kFloat32, {8, 6});
  for (int rank = 0; rank < 2; ++rank) {
    testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
      // Only one of them comes: it would wait for the other.
      if (coordinator.rank() != rank) return;
      Runtime runtime({.threads = 1, .coordinator = &coordinator});
      const ShardedArray held = part_of(whole, rows, rank);
      const auto moved = reshard(held, cells, runtime, {.timeout = std::chrono::seconds(0)});
      ASSERT_TRUE(moved) << moved.error().to_string();
      expect_held(*moved, whole, cells, rank);
      EXPECT_EQ(moved->shards()[0].data.data(), held.shards()[0].data.data());
    });
  }
}

TEST(Reshard, AnErrorOfOneIsEverybodys) {
  const Mesh mesh = must(Mesh::over_ranks({{"x", 3}}, 3));
  const Sharding rows = must(NamedSharding::make(mesh, {{"x"}}));
  const Array whole = must(Array::zeros(DType::kInt8, {6}));
  for (const bool other_array : {false, true}) {
    const auto reasons = testing::by_rank(3, [&](coord::Coordinator& coordinator) {
      Runtime runtime({.threads = 1, .coordinator = &coordinator});
      ShardedArray mine = part_of(whole, rows, coordinator.rank());
      if (coordinator.rank() == 2) {
        mine = other_array ? part_of(must(Array::zeros(DType::kInt8, {9})), rows, 2)
                           : must(ShardedArray::make(DType::kInt8, {6}, rows, {}));
      }
      const auto moved = reshard(mine, Sharding(), runtime);
      return moved ? "none" : moved.error().to_string();
    });
    for (const std::string& reason : reasons) {
      EXPECT_NE(reason.find("rank 2: "), std::string::npos) << reason;
      EXPECT_EQ(reason, reasons[0]);
    }
  }
}

TEST(Reshard, RefusesRanksThatTheJobDoesNotHave) {
  const Mesh mesh = must(Mesh::over_ranks({{"x", 2}}, 2));
  Runtime alone;
  EXPECT_EQ(testing::reason(reshard(must(Array::zeros(DType::kInt8, {6})),
                                    must(NamedSharding::make(mesh, {{"x"}})), alone)),
            "plan/unknown-rank");
}

TEST(Reshard, BroadcastsTheArrayOfRankZero) {
  testing::Random random(53);
  const Array whole = testing::random_array(random, DType::kFloat32, {30, 7});
  const Array other = testing::random_array(random, DType::kFloat32, {30, 7});
  const Mesh mesh = must(Mesh::over_ranks({{"x", 3}}, 3));
  for (const Sharding& target : {Sharding(), Sharding(must(NamedSharding::make(mesh, {{"x"}})))}) {
    for (const std::uint64_t limit : {0U, 1U, 100U, 1U << 20}) {
      testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
        Runtime runtime({.threads = 1, .coordinator = &coordinator});
        const auto made = reshard(coordinator.rank() == 0 ? whole : other, target, runtime,
                                  {.memory_limit = limit});
        ASSERT_TRUE(made) << made.error().to_string();
        expect_held(*made, whole, target, coordinator.rank());
      });
    }
  }
}

}  // namespace
}  // namespace cairn
