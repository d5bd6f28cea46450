// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/divide_work.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "cairn/manifest/names.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

using testing::below;
using testing::must;

Mesh random_mesh(testing::Random& random) {
  std::vector<MeshAxis> axes;
  std::size_t devices = 1;
  for (const char* const name : {"a", "b", "c"}) {
    axes.push_back({name, static_cast<Index>(1 + below(random, 4))});
    devices *= static_cast<std::size_t>(axes.back().size);
  }
  // Devices of any order on ranks of any sizes, as long as every rank has one.
  std::vector<Device> placed;
  const int ranks = static_cast<int>(1 + below(random, devices));
  for (std::size_t i = 0; i < devices; ++i) {
    const int rank = static_cast<int>(
        i < static_cast<std::size_t>(ranks) ? i : below(random, static_cast<std::uint64_t>(ranks)));
    placed.push_back({static_cast<int>(i), rank});
  }
  std::ranges::shuffle(placed, random);
  return must(Mesh::make(std::move(axes), std::move(placed)));
}

int ranks_of(const Mesh& mesh) {
  int last = 0;
  for (const Device& device : mesh.devices()) last = std::max(last, device.rank);
  return last + 1;
}

PlannedArray random_array(testing::Random& random, const Mesh& mesh, const PlanOptions& options) {
  Shape shape;
  std::vector<std::vector<std::string>> entries;
  for (std::uint64_t d = below(random, 3); d > 0; --d) {
    shape.push_back(static_cast<Index>(144 * below(random, 4)));
    entries.emplace_back();
  }
  Sharding sharding;
  for (const MeshAxis& axis : mesh.axes()) {
    const std::size_t d = below(random, shape.size() + 1);
    if (d < shape.size() && entries[d].empty()) entries[d].push_back(axis.name);
  }
  if (below(random, 6) != 0)
    sharding = must(NamedSharding::make(mesh, PartitionSpec(std::move(entries))));
  return must(plan_array(KeyPath({"w"}), DType::kFloat32, shape, sharding, options));
}

/// The same arrays as every rank divides them.
std::vector<std::vector<PlannedArray>> divided(const std::vector<PlannedArray>& arrays, int ranks) {
  std::vector<std::vector<PlannedArray>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(arrays);
    must(divide_work({&all.back()}, rank, ranks));
  }
  return all;
}

std::vector<PlannedArray> random_arrays(testing::Random& random, const Mesh& mesh,
                                        std::string_view layout) {
  const PlanOptions options{.layout = std::string(layout),
                            .chunk_bytes = 4096 + below(random, 100'000)};
  std::vector<PlannedArray> arrays;
  for (int i = 0; i < 20; ++i) arrays.push_back(random_array(random, mesh, options));
  return arrays;
}

TEST(DivideWork, EveryChunkHasOneWriterWhichHoldsIt) {
  testing::Random random(1);
  for (int round = 0; round < 100; ++round) {
    const Mesh mesh = random_mesh(random);
    const auto arrays = random_arrays(random, mesh, kZarr2Layout);
    const auto ranks = divided(arrays, ranks_of(mesh));
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      std::vector<int> writers(arrays[i].stored.chunk_count());
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const auto held =
            arrays[i].sharding.holdings(arrays[i].stored.shape, static_cast<int>(rank));
        for (const std::uint64_t chunk : ranks[rank][i].work.chunks) {
          ++writers[chunk];
          const Box box = arrays[i].stored.chunk_box(chunk);
          EXPECT_TRUE(std::ranges::any_of(
              held, [&](const Holding& holding) { return holding.box.contains(box); }));
        }
      }
      EXPECT_EQ(writers, std::vector<int>(writers.size(), 1));
    }
    if (HasFailure()) return;
  }
}

TEST(DivideWork, ReplicasShareTheBytes) {
  testing::Random random(2);
  for (int round = 0; round < 100; ++round) {
    const Mesh mesh = random_mesh(random);
    const auto arrays = random_arrays(random, mesh, kZarr2Layout);
    const auto ranks = divided(arrays, ranks_of(mesh));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      double written = 0;
      double fair = 0;
      std::map<std::vector<int>, double> largest;  // chunk of each set of replicas
      for (const PlannedArray& array : ranks[rank]) {
        const format::StoredArray& stored = array.stored;
        for (const std::uint64_t chunk : array.work.chunks)
          written += 4.0 * static_cast<double>(stored.chunk_box(chunk).elements());
        for (const Holding& held : array.sharding.holdings(stored.shape, static_cast<int>(rank))) {
          fair += 4.0 * static_cast<double>(held.box.elements()) /
                  static_cast<double>(held.ranks->size());
          double& chunk = largest[*held.ranks];
          if (held.ranks->size() > 1)
            chunk = std::max(chunk, static_cast<double>(stored.chunk_bytes()));
        }
      }
      for (const auto& [set, chunk] : largest) fair += chunk;
      EXPECT_LE(written, fair) << "rank " << rank;
    }
    if (HasFailure()) return;
  }
}

TEST(DivideWork, TensorsAreCoveredOnceByRunsOrByPieces) {
  testing::Random random(3);
  for (int round = 0; round < 100; ++round) {
    const Mesh mesh = random_mesh(random);
    const auto arrays = random_arrays(random, mesh, kSafetensorsLayout);
    const auto ranks = divided(arrays, ranks_of(mesh));
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      std::vector<ElementRange> ranges;
      std::map<std::size_t, std::pair<std::uint64_t, std::uint64_t>> groups;  // left, and to leave
      for (const auto& rank : ranks) {
        const ArrayWork& work = rank[i].work;
        EXPECT_EQ(work.assembler, ranks[0][i].work.assembler);
        ranges.insert(ranges.end(), work.ranges.begin(), work.ranges.end());
        for (const LeftPiece& piece : work.pieces) {
          groups[piece.group].first += piece.range.end - piece.range.begin;
          groups[piece.group].second = piece.box.elements();
        }
      }
      std::ranges::sort(ranges, {}, &ElementRange::begin);
      std::uint64_t covered = 0;
      for (const ElementRange& range : ranges) {
        EXPECT_EQ(range.begin, covered);
        covered = range.end;
      }
      for (const auto& [group, counts] : groups) {
        EXPECT_EQ(counts.first, counts.second);
        covered += counts.second;
      }
      EXPECT_EQ(covered, Box::whole(arrays[i].stored.shape).elements());
      EXPECT_EQ(ranks[0][i].work.assembler.has_value(), !groups.empty());
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace cairn
