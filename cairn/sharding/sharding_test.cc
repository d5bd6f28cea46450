// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/sharding.h"

#include <limits>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace cairn {
namespace {

template <typename T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : std::string(result.error().reason());
}

Sharding named(PartitionSpec spec) {
  return *NamedSharding::make(*Mesh::over_ranks({{"a", 2}, {"b", 4}}, 4), std::move(spec));
}

TEST(Sharding, IsOneDeviceWithEverythingByDefault) {
  const Sharding plain;
  EXPECT_EQ(plain.named(), nullptr);
  EXPECT_EQ(plain.device_count(), 1U);
  EXPECT_EQ(plain.device(0), Device{});
  EXPECT_TRUE(plain.check({3, 5}));
  EXPECT_EQ(plain.box(0, {3, 5}), Box::whole({3, 5}));
  EXPECT_EQ(plain.cuts({3, 0}), (std::vector<Cut>{{3, true}, {1, true}}));
  EXPECT_EQ(plain.groups({3}).size(), 1U);
  const auto held = plain.holdings({3}, 0);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].box, Box::whole({3}));
  EXPECT_EQ(*held[0].ranks, std::vector<int>{0});
  EXPECT_EQ(held[0].ranks.get(), plain.holdings({4, 4}, 0)[0].ranks.get());
  EXPECT_TRUE(plain.holdings({3}, 1).empty());
}

TEST(Sharding, HoldsEachBoxOfARankOnce) {
  const Sharding sharding = named({{"a"}});
  const auto held = sharding.holdings({8}, 2);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].box, (Box{{4}, {8}}));
  EXPECT_EQ(held[0].position, 4U);
  EXPECT_EQ(held[0].group, 1U);
  EXPECT_EQ(*held[0].ranks, (std::vector<int>{2, 3}));
  EXPECT_EQ(held[0].ranks.get(), sharding.holdings({16, 3}, 3)[0].ranks.get());
  EXPECT_EQ(named({{"b", "a"}}).holdings({8}, 2).size(), 2U);
}

TEST(Sharding, ChecksTheBoxesOfAList) {
  constexpr Index kMost = std::numeric_limits<Index>::max();
  const auto of = [](Shape shape, std::vector<Box> boxes) {
    std::vector<Placement> placements;
    for (Box& box : boxes) placements.push_back({std::move(box), {}});
    return outcome(Sharding::of_boxes(std::move(shape), placements));
  };
  EXPECT_EQ(of({4}, {{{0}, {2}}, {{2}, {4}}}), "ok");
  EXPECT_EQ(of({4}, {}), "sharding/not-covered");
  EXPECT_EQ(of({0}, {}), "sharding/not-covered");
  EXPECT_EQ(of({4}, {{{0}, {2}}}), "sharding/not-covered");
  EXPECT_EQ(of({4}, {{{0}, {3}}, {{2}, {4}}}), "sharding/overlap");
  EXPECT_EQ(of({4}, {{{0}, {5}}}), "sharding/box-outside");
  EXPECT_EQ(of({4}, {{{-1}, {4}}}), "sharding/box-outside");
  EXPECT_EQ(of({4}, {{{3}, {2}}, {{0}, {4}}}), "sharding/box-outside");
  EXPECT_EQ(of({4}, {{{0, 0}, {4, 1}}}), "sharding/box-outside");
  EXPECT_EQ(of({4}, {{{0}, {}}}), "sharding/box-outside");
  EXPECT_EQ(of({-4}, {{{0}, {4}}}), "shape/negative");
  EXPECT_EQ(of({kMost, 4}, {{{0, 0}, {kMost, 4}}}), "shape/overflow");
  EXPECT_EQ(of({kMost / 2}, {{{0}, {kMost / 2}}, {{0}, {1}}, {{1}, {kMost / 2}}}),
            "sharding/overlap");
}

TEST(Sharding, TakesOnlyTheShapesItFits) {
  const Sharding boxes = *Sharding::of_boxes({4}, {{{{0}, {1}}, {0, 0}}, {{{1}, {4}}, {1, 1}}});
  EXPECT_EQ(outcome(boxes.check({4})), "ok");
  EXPECT_EQ(outcome(boxes.check({5})), "sharding/other-shape");
  EXPECT_EQ(outcome(named({{"a"}}).check({5})), "sharding/uneven");
  EXPECT_EQ(outcome(named({{"a"}}).check({})), "sharding/spec-too-long");
}

TEST(Sharding, IsEqualByDevicesAndBoxes) {
  const std::vector<Placement> halves = {{{{0}, {2}}, {0, 0}}, {{{2}, {4}}, {1, 1}}};
  const std::vector<Placement> other = {{{{0}, {3}}, {0, 0}}, {{{3}, {4}}, {1, 1}}};
  EXPECT_EQ(*Sharding::of_boxes({4}, halves), *Sharding::of_boxes({4}, halves));
  EXPECT_NE(*Sharding::of_boxes({4}, halves), *Sharding::of_boxes({4}, other));
  EXPECT_NE(*Sharding::of_boxes({4}, halves), Sharding());
  EXPECT_EQ(named({{"a"}}), named({{"a"}}));
  EXPECT_NE(named({{"a"}}), Sharding());
}

TEST(Sharding, FindsTheStepOfUnevenCuts) {
  const Sharding sharding = *Sharding::of_boxes(
      {10, 7, 0},
      {{{{0, 0, 0}, {4, 7, 0}}, {}}, {{{4, 0, 0}, {6, 7, 0}}, {}}, {{{6, 0, 0}, {10, 7, 0}}, {}}});
  EXPECT_EQ(sharding.cuts({10, 7, 0}), (std::vector<Cut>{{2, false}, {7, true}, {1, true}}));
}

/// The list of its boxes must give the same answers as the mesh.
void expect_alike(const Sharding& mesh, const Sharding& boxes, const Shape& shape) {
  ASSERT_EQ(mesh.device_count(), boxes.device_count());
  ASSERT_EQ(mesh.cuts(shape), boxes.cuts(shape));
  ASSERT_EQ(mesh.groups(shape).size(), boxes.groups(shape).size());
  std::set<int> ranks;
  for (std::size_t i = 0; i < mesh.device_count(); ++i) {
    ASSERT_EQ(mesh.device(i), boxes.device(i));
    ASSERT_EQ(mesh.box(i, shape), boxes.box(i, shape));
    ASSERT_EQ(mesh.groups(shape).group_of(i), boxes.groups(shape).group_of(i));
    ranks.insert(mesh.device(i).rank);
  }
  for (const int rank : ranks) {
    const auto a = mesh.holdings(shape, rank);
    const auto b = boxes.holdings(shape, rank);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].box, b[i].box);
      ASSERT_EQ(a[i].position, b[i].position);
      ASSERT_EQ(a[i].group, b[i].group);
      ASSERT_EQ(*a[i].ranks, *b[i].ranks);
    }
  }
}

TEST(Sharding, SaysTheSameOfAMeshAndOfAListOfItsBoxes) {
  std::mt19937 random(9);
  const std::vector<std::string> names = {"a", "b", "c"};
  for (int round = 0; round < 300; ++round) {
    std::vector<MeshAxis> axes;
    std::vector<PartitionSpec::Entry> entries(1 + random() % 3);
    int count = 1;
    for (const std::string& name : names) {
      axes.push_back({name, static_cast<Index>(1 + random() % 3)});
      count *= static_cast<int>(axes.back().size);
      if (random() % 4 != 0) entries[random() % entries.size()].push_back(name);
    }
    std::vector<Device> devices;
    for (int id = 0; id < count; ++id) devices.push_back({id, static_cast<int>(random() % 4)});
    const auto mesh = NamedSharding::make(*Mesh::make(axes, devices), PartitionSpec(entries));
    Shape shape;
    for (std::size_t d = 0; d < entries.size(); ++d) {
      shape.push_back(mesh->parts(d) * static_cast<Index>(random() % 4));
    }
    const auto boxes = Sharding::of_boxes(shape, mesh->placements(shape));
    ASSERT_TRUE(boxes) << boxes.error().to_string();
    expect_alike(*mesh, *boxes, shape);
  }
}

TEST(Sharding, HoldingsOfManyLeavesOnAHugeMeshAreFewSteps) {
  const Mesh mesh = *Mesh::over_ranks({{"dp", 128}, {"fsdp", 128}}, 16384);
  const Sharding split = *NamedSharding::make(mesh, {{"fsdp"}, {}});
  const Sharding replicated = *NamedSharding::make(mesh, {});
  std::size_t held = 0;
  for (Index leaf = 1; leaf <= 20000; ++leaf) {
    held += split.holdings({128 * leaf, 4}, 77).size() + replicated.holdings({leaf}, 77).size();
  }
  EXPECT_EQ(held, 40000U);
}

}  // namespace
}  // namespace cairn
