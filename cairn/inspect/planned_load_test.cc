// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/planned_load.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "cairn/inspect/leaf_readers.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/testing/counting_store.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;

Mesh mesh_of(std::string_view text, int ranks) {
  return must(Mesh::over_ranks(must(parse_mesh_axes(text)), ranks));
}

/// Two arrays of a size that every rank reads for itself, and one that rank 0 reads for all.
Tree sample_tree(testing::Random& random) {
  return Tree::dict({{"a", testing::random_array(random, DType::kFloat32, {96, 48, 24})},
                     {"b", testing::random_array(random, DType::kInt8, {480, 240})},
                     {"small", testing::random_array(random, DType::kFloat64, {10})}});
}

struct Saved {
  testing::TempDir dir;
  Runtime runtime;
  Checkpoint checkpoint;
};

void save_sample(Saved& saved, testing::Random& random, const SaveOptions& options) {
  must(save_tree(sample_tree(random), saved.dir / "c", options, saved.runtime, "model"));
  saved.checkpoint = must(open_checkpoint(saved.dir / "c", saved.runtime));
}

PartitionRules random_rules(testing::Random& random) {
  const std::string a[] = {R"(["x"])", R"(["x", "y"])", R"([null, null, ["y", "x"]])", "[]",
                           R"([null, "y"])"};
  const std::string b[] = {R"([["x", "y"]])", R"(["y", "x"])", R"([null, "x"])", "[]"};
  return must(PartitionRules::parse(R"([["^a$", )" + a[testing::below(random, std::size(a))] +
                                    R"(], ["^b$", )" + b[testing::below(random, std::size(b))] +
                                    R"(], [".", []]])"));
}

struct Layout {
  Mesh mesh;
  PartitionRules rules;
  bool check;
};

/// Bytes and requests of a real load by `rank` of the arrays that it reads itself.
std::pair<std::uint64_t, std::uint64_t> really_read(const Saved& saved, const Layout& layout,
                                                    coord::Coordinator& coordinator) {
  Checkpoint checkpoint = saved.checkpoint;
  const auto counter = std::make_shared<testing::CountingStore>(checkpoint.prefixes[0].store);
  checkpoint.prefixes[0].store = counter;
  Runtime runtime({.threads = 1, .coordinator = &coordinator});
  LoadOptions options{.keys = {KeyPath({"a"}), KeyPath({"b"})}};
  options.mesh = layout.mesh;
  options.partition_rules = &layout.rules;
  options.check = layout.check;
  must(load(checkpoint, options, runtime));
  return {counter->bytes(), counter->requests()};
}

TEST(PlannedLoad, TellsWhatEachRankOfARealLoadReads) {
  testing::Random random(3);
  for (int round = 0; round < 12; ++round) {
    Saved saved;
    SaveOptions options{.layout = std::string(round % 3 == 0 ? kSafetensorsLayout : kZarr2Layout)};
    options.chunk_bytes = 2000 + testing::below(random, 60'000);
    options.enable_compression = round % 3 != 0 && round % 4 == 1;
    save_sample(saved, random, options);
    const int ranks = round % 2 == 0 ? 8 : 4;
    const Layout layout{mesh_of(round % 2 == 0 ? "x=4,y=2" : "y=2,x=4", ranks),
                        random_rules(random), round % 5 != 0};
    const auto planned = must(PlannedLoad::make(
        saved.checkpoint, layout.mesh, {.partition_rules = &layout.rules, .check = layout.check}));
    ASSERT_EQ(planned.ranks(), ranks);
    testing::run_ranks(ranks, [&](coord::Coordinator& coordinator) {
      const auto [bytes, requests] = really_read(saved, layout, coordinator);
      const RankReads reads = must(planned.reads_of(coordinator.rank()));
      const auto& lengths = saved.checkpoint.prefixes[0].manifest.arrays[2].sums.lengths();
      const std::uint64_t small = coordinator.rank() == 0 ? lengths.at(0) : 0;
      EXPECT_EQ(reads.read, bytes + small) << round;
      EXPECT_EQ(reads.requests, requests + (small > 0 ? 1 : 0)) << round;
    });
  }
}

TEST(PlannedLoad, TotalsAreSumsWhereBytesAreReadAndCountsWhereTheyAreNeeded) {
  testing::Random random(4);
  Saved saved;
  save_sample(saved, random, {});
  const auto rules = must(PartitionRules::parse(R"([["^a$", ["x"]], [".", []]])"));
  const auto planned =
      must(PlannedLoad::make(saved.checkpoint, mesh_of("x=4", 4), {.partition_rules = &rules}));
  const PlannedReads reads = must(planned.reads(saved.runtime));
  constexpr std::uint64_t kA = 96 * 48 * 24 * 4;
  constexpr std::uint64_t kB = 480 * 240;
  ASSERT_EQ(reads.ranks.size(), 4u);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(reads.ranks[rank].arrays, 3u);
    EXPECT_EQ(reads.ranks[rank].needed, kA / 4 + kB + 80);
    EXPECT_EQ(reads.ranks[rank].told, rank == 0 ? 0u : 80u);
    EXPECT_GE(*reads.ranks[rank].amplification(), 1.0);
  }
  const auto sum = [&](std::uint64_t RankReads::* member) {
    return std::transform_reduce(reads.ranks.begin(), reads.ranks.end(), std::uint64_t{0},
                                 std::plus<>(), [&](const RankReads& one) { return one.*member; });
  };
  EXPECT_EQ(reads.total.needed, kA + kB + 80);
  EXPECT_EQ(reads.total.arrays, 3u);
  EXPECT_EQ(reads.total.told, 0u);
  EXPECT_EQ(reads.total.read, sum(&RankReads::read));
  EXPECT_EQ(reads.total.requests, sum(&RankReads::requests));
  EXPECT_EQ(reads.largest, 0);
  EXPECT_EQ(RankReads{}.amplification(), std::nullopt);
}

TEST(PlannedLoad, OneRankReadsEverythingOnce) {
  testing::Random random(5);
  Saved saved;
  save_sample(saved, random, {});
  const auto planned = must(PlannedLoad::make(saved.checkpoint, mesh_of("x=4", 1), {}));
  const PlannedReads reads = must(planned.reads(saved.runtime));
  ASSERT_EQ(reads.ranks.size(), 1u);
  EXPECT_EQ(reads.ranks[0].told, 0u);
  EXPECT_EQ(*reads.total.amplification(), 1.0);
}

TEST(PlannedLoad, WithoutRulesDoesAsALoadDoes) {
  testing::Random random(6);
  Saved saved;
  save_sample(saved, random, {});
  const auto several = PlannedLoad::make(saved.checkpoint, mesh_of("x=2,y=2", 4), {});
  EXPECT_EQ(reason(several), "load/no-sharding");
  EXPECT_EQ(several.error().where(), "prefix model: leaf a");
  const auto replicated = must(PlannedLoad::make(saved.checkpoint, mesh_of("x=2", 2), {}));
  EXPECT_FALSE(std::ranges::any_of(replicated.arrays(), &PlacedArray::split));
  saved.checkpoint.prefixes[0].manifest.arrays[1].spec = PartitionSpec{{"x"}};
  const auto as_saved = must(PlannedLoad::make(saved.checkpoint, mesh_of("x=2", 2), {}));
  EXPECT_TRUE(as_saved.arrays()[1].split());
}

TEST(PlannedLoad, RefusesWhatALoadRefuses) {
  testing::Random random(7);
  Saved saved;
  save_sample(saved, random, {});
  const std::tuple<std::string, std::string> cases[] = {
      {R"([["^a$", ["z"]], [".", []]])", "sharding/unknown-axis"},
      {R"([["small", ["x"]], [".", []]])", "sharding/uneven"},
      {R"([["^a$", ["x"]]])", "rules/no-match"},
  };
  for (const auto& [text, expected] : cases) {
    const auto rules = must(PartitionRules::parse(text));
    EXPECT_EQ(
        reason(PlannedLoad::make(saved.checkpoint, mesh_of("x=4", 4), {.partition_rules = &rules})),
        expected);
  }
  EXPECT_EQ(reason(PlannedLoad::make(saved.checkpoint, mesh_of("x=4", 4), {.prefix = "other"})),
            "load/prefix-missing");
}

TEST(LeafReaders, AreTheRanksWhoseBoxesMeetTheCell) {
  testing::Random random(8);
  Saved layouts[2];
  save_sample(layouts[0], random, {});
  save_sample(layouts[1], random, {.layout = std::string(kSafetensorsLayout)});
  for (int round = 0; round < 60; ++round) {
    Saved& saved = layouts[round % 3 == 0 ? 1 : 0];
    for (ManifestArray& array : saved.checkpoint.prefixes[0].manifest.arrays) {
      if (array.stored.one_object) continue;
      for (std::size_t d = 0; d < array.stored.shape.size(); ++d) {
        const auto size = static_cast<std::uint64_t>(array.stored.shape[d]);
        array.stored.chunk_shape[d] = static_cast<Index>(7 + testing::below(random, size));
      }
    }
    const PartitionRules rules = random_rules(random);
    const auto planned = must(
        PlannedLoad::make(saved.checkpoint, mesh_of("x=4,y=2", 4), {.partition_rules = &rules}));
    for (const PlacedArray& array : planned.arrays()) {
      const Shape& shape = array.array().stored.shape;
      const LeafReaders found = must(leaf_readers(array));
      ASSERT_EQ(found.parts, array.array().stored.one_object);
      for (std::size_t cell = 0; cell < found.readers.size(); ++cell) {
        Box box = Box::whole(shape);
        const Shape at = found.position(cell);
        for (std::size_t d = 0; d < at.size(); ++d) {
          box.begin[d] = at[d] * found.cell_shape[d];
          box.end[d] = std::min(shape[d], box.begin[d] + found.cell_shape[d]);
        }
        std::set<int> expected;
        for (int rank = 0; rank < (array.told ? 1 : 4); ++rank) {
          for (const Holding& held : array.sharding.holdings(shape, rank)) {
            if (!held.box.intersect(box).empty()) expected.insert(rank);
          }
        }
        ASSERT_EQ(found.readers[cell], std::vector(expected.begin(), expected.end())) << round;
      }
      std::uint64_t held = 0;
      for (const LeafReaders::Part& part : found.held) held += part.box.elements();
      ASSERT_EQ(held, Box::whole(shape).elements()) << "each box once";
    }
  }
}

TEST(LeafReaders, OfSafetensorsAreThoseOfThePartsThatRanksHold) {
  testing::Random random(9);
  Saved saved;
  save_sample(saved, random, {.layout = std::string(kSafetensorsLayout)});
  const auto rules = must(PartitionRules::parse(R"([["^b$", ["x", "y"]], [".", []]])"));
  const auto planned =
      must(PlannedLoad::make(saved.checkpoint, mesh_of("x=4,y=2", 8), {.partition_rules = &rules}));
  const PlacedArray* telling = most_telling_array(planned);
  ASSERT_NE(telling, nullptr);
  EXPECT_EQ(telling->array().path.text(), "b") << "smaller than a, but split";
  const LeafReaders found = must(leaf_readers(*telling));
  EXPECT_EQ(found.grid, (Shape{4, 2}));
  EXPECT_EQ(found.cell_shape, (Shape{120, 120}));
  EXPECT_EQ(found.readers[3], std::vector{3});
}

TEST(LeafReaders, AreNotWorkedOutBeyondALimit) {
  testing::Random random(10);
  Saved saved;
  save_sample(saved, random, {});
  saved.checkpoint.prefixes[0].manifest.arrays[1].stored.chunk_shape = {1, 1};
  const auto planned = must(PlannedLoad::make(saved.checkpoint, mesh_of("x=16", 16), {}));
  EXPECT_EQ(reason(leaf_readers(planned.arrays()[1])), "plan/too-many-cells");
}

TEST(PlannedLoads, OfMoreThanARankCanHoldAreRefused) {
  testing::Random random(11);
  Saved saved;
  save_sample(saved, random, {});
  format::StoredArray& stored = saved.checkpoint.prefixes[0].manifest.arrays[1].stored;
  stored.shape = stored.chunk_shape = {Index{1} << 28, Index{1} << 28};
  const auto planned = must(PlannedLoad::make(saved.checkpoint, mesh_of("x=2", 2), {}));
  EXPECT_EQ(reason(planned.reads(saved.runtime)), "plan/too-large");
}

}  // namespace
}  // namespace cairn
