// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/sharded_leaves.h"

#include "cairn/array/array.h"
#include "cairn/testing/must.h"

namespace cairn::testing {

ShardedArray part_of(const Array& whole, const Sharding& sharding, int rank) {
  std::vector<Shard> shards;
  for (std::size_t at = 0; at < sharding.device_count(); ++at) {
    if (sharding.device(at).rank != rank) continue;
    const Array slice = whole.slice(sharding.box(at, whole.shape()));
    Array copy = must(Array::allocate(whole.dtype(), slice.shape()));
    must(copy_array(slice, copy));
    shards.push_back({at, std::move(copy)});
  }
  return must(ShardedArray::make(whole.dtype(), whole.shape(), sharding, std::move(shards)));
}

Mesh random_mesh(Random& random, int ranks) {
  const std::vector<std::vector<MeshAxis>> shapes{
      {{"x", ranks}},
      {{"x", ranks}, {"y", 2}},
      {{"y", 2}, {"x", ranks}},
      {{"x", ranks}, {"y", 1}, {"z", 3}},
  };
  return must(Mesh::over_ranks(shapes[below(random, shapes.size())], ranks));
}

PartitionSpec random_spec(Random& random, const Mesh& mesh, const Shape& shape) {
  std::vector<std::vector<std::string>> entries(shape.size());
  std::vector<Index> parts(shape.size(), 1);
  for (const MeshAxis& axis : mesh.axes()) {
    if (shape.empty() || below(random, 3) == 0) continue;
    const std::size_t d = below(random, shape.size());
    if (shape[d] % (parts[d] * axis.size) != 0) continue;
    parts[d] *= axis.size;
    entries[d].push_back(axis.name);
  }
  return PartitionSpec(std::move(entries));
}

std::vector<ShardedLeaf> random_leaves(Random& random, const Mesh& mesh) {
  const DType dtypes[] = {DType::kFloat32, DType::kBfloat16, DType::kInt8, DType::kBool,
                          DType::kInt64};
  std::vector<ShardedLeaf> leaves;
  for (int i = 0; i < 6; ++i) {
    Shape shape;
    for (std::uint64_t d = below(random, 4); d > 0; --d)
      shape.push_back(static_cast<Index>(24 * below(random, 3)));
    const DType dtype = dtypes[below(random, std::size(dtypes))];
    leaves.push_back({"leaf" + std::to_string(i), random_array(random, dtype, shape), Sharding()});
    if (below(random, 5) != 0) {
      leaves.back().sharding = must(NamedSharding::make(mesh, random_spec(random, mesh, shape)));
    }
  }
  return leaves;
}

Tree tree_of(const std::vector<ShardedLeaf>& leaves, int rank) {
  std::vector<std::pair<Key, Tree>> children;
  for (const ShardedLeaf& leaf : leaves)
    children.emplace_back(leaf.name, Tree(part_of(leaf.whole, leaf.sharding, rank)));
  children.emplace_back("step", Value(Integer(7)));
  return Tree::dict(std::move(children));
}

Tree whole_tree(const std::vector<ShardedLeaf>& leaves) {
  std::vector<std::pair<Key, Tree>> children;
  for (const ShardedLeaf& leaf : leaves) children.emplace_back(leaf.name, leaf.whole);
  children.emplace_back("step", Value(Integer(7)));
  return Tree::dict(std::move(children));
}

}  // namespace cairn::testing
