// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/mesh.h"

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace cairn {
namespace {

std::vector<Device> devices(int count) {
  std::vector<Device> made;
  for (int id = 0; id < count; ++id) made.push_back({id, 0});
  return made;
}

std::string outcome(const Result<Mesh>& mesh) {
  return mesh ? "ok" : std::string(mesh.error().reason());
}

TEST(Mesh, RefusesWhatIsNoGridOfDevices) {
  EXPECT_EQ(outcome(Mesh::make({{"a", 2}, {"b", 3}}, devices(6))), "ok");
  EXPECT_EQ(outcome(Mesh::make({}, devices(1))), "ok");
  EXPECT_EQ(outcome(Mesh::make({{"", 1}}, devices(1))), "mesh/axis-name");
  EXPECT_EQ(outcome(Mesh::make({{"\xff", 1}}, devices(1))), "mesh/axis-name");
  EXPECT_EQ(outcome(Mesh::make({{"a", 1}, {"b", 1}, {"a", 1}}, devices(1))), "mesh/axis-name");
  EXPECT_EQ(outcome(Mesh::make({{"a", 0}}, {})), "mesh/axis-size");
  EXPECT_EQ(outcome(Mesh::make({{"a", -2}, {"b", -3}}, devices(6))), "mesh/axis-size");
  EXPECT_EQ(outcome(Mesh::make({{"a", Index{1} << 32}, {"b", Index{1} << 32}}, devices(1))),
            "mesh/axis-size");
  EXPECT_EQ(outcome(Mesh::make({{"a", 2}}, devices(3))), "mesh/device-count");
  EXPECT_EQ(outcome(Mesh::make({}, {})), "mesh/device-count");
  EXPECT_EQ(outcome(Mesh::make({{"a", 2}}, {{7, 0}, {7, 1}})), "mesh/device-twice");
  std::vector<MeshAxis> many;
  for (std::size_t i = 0; i <= Mesh::kMaxAxes; ++i) many.push_back({std::to_string(i), 1});
  EXPECT_EQ(outcome(Mesh::make(many, devices(1))), "mesh/axis-count");
  many.pop_back();
  EXPECT_EQ(outcome(Mesh::make(many, devices(1))), "ok");
}

TEST(Mesh, AxesAreReadAsPeopleWriteThem) {
  const auto axes = parse_mesh_axes("fsdp=4,t=p=2");
  ASSERT_TRUE(axes);
  EXPECT_EQ(*axes, (std::vector<MeshAxis>{{"fsdp", 4}, {"t=p", 2}}));
  for (const char* text : {"", "fsdp", "fsdp=", "fsdp=x", "fsdp=4,", ",fsdp=4", "fsdp=4 ", "a=2;b",
                           "a=99999999999999999999"}) {
    const auto refused = parse_mesh_axes(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().reason(), "mesh/syntax") << text;
  }
}

TEST(Mesh, GivesNeighboursToTheSameRank) {
  const auto mesh = Mesh::over_ranks({{"a", 3}, {"b", 2}}, 3);
  ASSERT_TRUE(mesh);
  EXPECT_EQ(mesh->devices(), (std::vector<Device>{{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 2}, {5, 2}}));
  EXPECT_EQ(outcome(Mesh::over_ranks({{"a", 6}}, 4)), "mesh/rank-count");
  EXPECT_EQ(outcome(Mesh::over_ranks({{"a", 6}}, 0)), "mesh/rank-count");
  EXPECT_EQ(outcome(Mesh::over_ranks({{"a", 6}}, -1)), "mesh/rank-count");
  EXPECT_EQ(outcome(Mesh::over_ranks({{"a", 0}}, 1)), "mesh/axis-size");
}

TEST(Mesh, FindsAxesCoordinatesAndTheDevicesOfARank) {
  const auto mesh =
      Mesh::make({{"a", 2}, {"b", 3}}, {{5, 1}, {3, 0}, {4, 1}, {0, 0}, {2, 7}, {1, 1}});
  ASSERT_TRUE(mesh);
  EXPECT_EQ(mesh->find_axis("b"), 1U);
  EXPECT_EQ(mesh->find_axis("c"), std::nullopt);
  EXPECT_EQ(mesh->coordinate(4, 0), 1);
  EXPECT_EQ(mesh->coordinate(4, 1), 1);
  EXPECT_EQ(mesh->positions_of(1), (std::vector<std::size_t>{0, 2, 5}));
  EXPECT_EQ(mesh->positions_of(7), (std::vector<std::size_t>{4}));
  EXPECT_EQ(mesh->positions_of(2), (std::vector<std::size_t>{}));
}

TEST(Mesh, IsEqualByWhatItHolds) {
  const std::vector<MeshAxis> axes = {{"a", 2}};
  const Mesh mesh = *Mesh::over_ranks(axes, 1);
  EXPECT_EQ(mesh, *Mesh::over_ranks(axes, 1));
  EXPECT_NE(mesh, *Mesh::over_ranks(axes, 2));
  EXPECT_NE(mesh, *Mesh::over_ranks({{"b", 2}}, 1));
}

TEST(Mesh, GroupsGiveTheSamePointersEveryTime) {
  const Mesh mesh = *Mesh::over_ranks({{"a", 4}, {"one", 1}, {"b", 4}}, 8);
  const Mesh copy = mesh;
  const DeviceGroups& groups = mesh.groups(0b001);
  EXPECT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups.ranks(2).get(), copy.groups(0b001).ranks(2).get());
  EXPECT_EQ(*groups.ranks(2), (std::vector<int>{4, 5}));
  // An axis of size 1 splits nothing.
  EXPECT_EQ(&mesh.groups(0b011), &groups);
  EXPECT_NE(&mesh.groups(0b101), &groups);
}

TEST(Mesh, MayBeAskedByManyThreadsAtOnce) {
  const Mesh mesh = *Mesh::over_ranks({{"a", 8}, {"b", 8}, {"c", 4}}, 64);
  std::vector<std::vector<const DeviceGroups*>> seen(4);
  std::vector<std::jthread> threads;
  for (auto& of_thread : seen) {
    threads.emplace_back([&mesh, &of_thread] {
      for (AxisSet set = 0; set < 8; ++set) of_thread.push_back(&mesh.groups(set));
    });
  }
  threads.clear();
  for (const auto& of_thread : seen) EXPECT_EQ(of_thread, seen.front());
}

/// Compares every two devices.
void expect_groups(const Mesh& mesh, AxisSet set) {
  const DeviceGroups& groups = mesh.groups(set);
  const auto agree = [&](std::size_t i, std::size_t j) {
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
      const bool counts = (set >> axis & 1U) != 0;
      if (counts && mesh.coordinate(i, axis) != mesh.coordinate(j, axis)) return false;
    }
    return true;
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < mesh.size(); ++i) {
    std::set<int> ranks;
    bool first = true;
    for (std::size_t j = 0; j < mesh.size(); ++j) {
      ASSERT_EQ(groups.group_of(i) == groups.group_of(j), agree(i, j));
      if (!agree(i, j)) continue;
      ranks.insert(mesh.devices()[j].rank);
      first = first && j >= i;
    }
    if (first) {
      ASSERT_EQ(groups.group_of(i), next++);
    }
    ASSERT_EQ(*groups.ranks(groups.group_of(i)), std::vector<int>(ranks.begin(), ranks.end()));
  }
  ASSERT_EQ(groups.size(), next);
}

void expect_members(const Mesh& mesh, AxisSet set, int rank) {
  const DeviceGroups& groups = mesh.groups(set);
  std::vector<DeviceGroups::Member> wanted;
  std::set<std::size_t> seen;
  for (std::size_t i = 0; i < mesh.size(); ++i) {
    if (mesh.devices()[i].rank != rank || !seen.insert(groups.group_of(i)).second) continue;
    wanted.push_back({i, groups.group_of(i)});
  }
  const auto members = groups.of_rank(rank);
  ASSERT_EQ(std::vector(members.begin(), members.end()), wanted);
}

TEST(Mesh, GroupsAreTheDevicesThatAgreeAlongTheAxes) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<MeshAxis> axes;
    int count = 1;
    for (std::size_t i = random() % 4; i > 0; --i) {
      axes.push_back(
          {std::string(1, static_cast<char>('a' + i)), static_cast<Index>(1 + random() % 4)});
      count *= static_cast<int>(axes.back().size);
    }
    std::vector<Device> placed = devices(count);
    for (Device& device : placed) device.rank = static_cast<int>(random() % 5);
    std::shuffle(placed.begin(), placed.end(), random);
    const Mesh mesh = *Mesh::make(axes, placed);
    for (AxisSet set = 0; set < 1U << axes.size(); ++set) {
      expect_groups(mesh, set);
      for (int rank = 0; rank < 6; ++rank) expect_members(mesh, set, rank);
    }
  }
}

}  // namespace
}  // namespace cairn
