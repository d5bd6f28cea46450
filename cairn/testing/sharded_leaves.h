// SPDX-License-Identifier: Apache-2.0
// Arrays on random meshes, whole and as each rank holds them, for property tests of what ranks do
// together.
#pragma once

#include <string>
#include <vector>

#include "cairn/testing/random_tree.h"

namespace cairn::testing {

/// What `rank` holds of `whole`: copies.
ShardedArray part_of(const Array& whole, const Sharding& sharding, int rank);

Mesh random_mesh(Random& random, int ranks);
/// A spec that suits the shape: each axis at most once, only where it divides.
PartitionSpec random_spec(Random& random, const Mesh& mesh, const Shape& shape);

struct ShardedLeaf {
  std::string name;
  Array whole;
  Sharding sharding;
};

/// Of several types and shapes, empty ones among them; most lie on the mesh.
std::vector<ShardedLeaf> random_leaves(Random& random, const Mesh& mesh);

/// A dict of them and of one value: what `rank` holds, and with whole arrays.
Tree tree_of(const std::vector<ShardedLeaf>& leaves, int rank);
Tree whole_tree(const std::vector<ShardedLeaf>& leaves);

}  // namespace cairn::testing
