// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/index_shardings.h"

#include <utility>
#include <vector>

#include "cairn/load/load_target.h"

namespace cairn {

Result<ShardingTree> create_sharding_tree_from_index(const Checkpoint& checkpoint, const Mesh& mesh,
                                                     const ShardingTreeOptions& options) {
  CAIRN_TRY_ASSIGN(const OpenedPrefix* prefix, checkpoint.prefix(options.prefix));
  const auto& arrays = prefix->manifest.arrays;
  SpecTree specs;
  if (options.partition_rules != nullptr) {
    std::vector<KeyPath> paths;
    std::vector<const Shape*> shapes;
    for (const ManifestArray& array : arrays) {
      paths.push_back(array.path);
      shapes.push_back(&array.stored.shape);
    }
    CAIRN_TRY_ASSIGN(specs, match_partition_rules(*options.partition_rules, paths, shapes));
  } else {
    for (const ManifestArray& array : arrays) specs.emplace(array.path, options.spec);
  }
  CAIRN_TRY_ASSIGN(auto tree, shardings_on(mesh, specs));
  for (const ManifestArray& array : arrays) {
    CAIRN_TRY(tree.at(array.path).check(array.stored.shape).in([&] {
      return "leaf " + array.path.text();
    }));
  }
  return tree;
}

Result<std::vector<Sharding>> load_shardings(const OpenedPrefix& prefix,
                                             const LoadOptions& options) {
  LoadOptions all = options;
  all.keys.clear();
  CAIRN_TRY_ASSIGN(const LoadTarget target, LoadTarget::make(prefix, all));
  return target.shardings_of(target.selected());
}

}  // namespace cairn
