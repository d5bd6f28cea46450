// SPDX-License-Identifier: Apache-2.0
// tests/oracle/test_sharding.py compares thousands of random cases with JAX.
#include "cairn/sharding/named_sharding.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

Mesh mesh() { return *Mesh::over_ranks({{"a", 2}, {"b", 3}}, 2); }

NamedSharding over(PartitionSpec spec) { return *NamedSharding::make(mesh(), std::move(spec)); }

template <typename T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : std::string(result.error().reason());
}

TEST(NamedSharding, RefusesAxesThatAreUnknownOrUsedTwice) {
  const auto make = [](PartitionSpec spec) {
    return outcome(NamedSharding::make(mesh(), std::move(spec)));
  };
  EXPECT_EQ(make({{"a", "b"}}), "ok");
  EXPECT_EQ(make({{"a"}, {"c"}}), "sharding/unknown-axis");
  EXPECT_EQ(make({{"a"}, {"b", "a"}}), "sharding/axis-twice");
  EXPECT_EQ(make({{"b", "b"}}), "sharding/axis-twice");
}

TEST(NamedSharding, RefusesShapesThatDoNotDivide) {
  const NamedSharding sharding = over({{}, {"b", "a"}});
  EXPECT_EQ(outcome(sharding.check({5, 12})), "ok");
  EXPECT_EQ(outcome(sharding.check({5, 0, 7})), "ok");
  EXPECT_EQ(outcome(sharding.check({12})), "sharding/spec-too-long");
  const auto uneven = sharding.check({5, 9});
  ASSERT_EQ(outcome(uneven), "sharding/uneven");
  EXPECT_EQ(
      uneven.error().message(),
      "dimension 1 of shape (5, 9) has size 9, which does not divide into the 6 parts of 'b', "
      "'a' in P(None, ('b', 'a'))");
}

TEST(NamedSharding, CutsByTheSlowestAxisFirst) {
  const NamedSharding sharding = over({{"b", "a"}});
  EXPECT_EQ(sharding.shard_shape({12, 5}), (Shape{2, 5}));
  EXPECT_EQ(sharding.parts(0), 6);
  EXPECT_EQ(sharding.parts(1), 1);
  std::vector<Index> begins;
  for (const Placement& placement : sharding.placements({12, 5})) {
    EXPECT_EQ(placement.box.shape(), (Shape{2, 5}));
    begins.push_back(placement.box.begin[0]);
  }
  EXPECT_EQ(begins, (std::vector<Index>{0, 4, 8, 2, 6, 10}));
  EXPECT_EQ(sharding.placements({12, 5})[4].device, (Device{4, 1}));
}

TEST(NamedSharding, CountsReplicasInDeviceOrder) {
  using Ids = std::vector<std::size_t>;
  EXPECT_EQ(over({{"b"}}).replica_ids({3}), (Ids{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(over({{"a"}}).replica_ids({2}), (Ids{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(over({}).replica_ids({}), (Ids{0, 1, 2, 3, 4, 5}));
  // Boxes of an empty dimension are equal, however it is cut.
  EXPECT_EQ(over({{"b"}, {"a"}}).replica_ids({0, 2}), (Ids{0, 1, 2, 0, 1, 2}));
}

TEST(NamedSharding, IsEqualByMeshAndSpec) {
  EXPECT_EQ(over({{"a"}}), over({{"a"}}));
  EXPECT_NE(over({{"a"}}), over({{"b"}}));
  EXPECT_NE(over({}), *NamedSharding::make(*Mesh::over_ranks({{"a", 2}, {"b", 3}}, 1), {}));
}

}  // namespace
}  // namespace cairn
