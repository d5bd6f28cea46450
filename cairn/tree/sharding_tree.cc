// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/sharding_tree.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/sharding/make_sharded.h"
#include "cairn/tree/flatten.h"

namespace cairn {

namespace {

std::string in_leaf(const KeyPath& path) { return "leaf " + path.text(); }

}  // namespace

std::string rule_key(const KeyPath& path) {
  return fmt::format("{}", fmt::join(path.parts(), "/"));
}

Result<SpecTree> match_partition_rules(const PartitionRules& rules,
                                       const std::vector<KeyPath>& paths,
                                       const std::vector<const Shape*>& shapes,
                                       const RuleOptions& options) {
  std::vector<std::string> keys;
  keys.reserve(paths.size());
  for (const KeyPath& path : paths) keys.push_back(rule_key(path));
  std::vector<RuleLeaf> leaves;
  for (std::size_t i = 0; i < paths.size(); ++i) leaves.push_back({keys[i], shapes[i]});
  CAIRN_TRY_ASSIGN(auto specs, match_partition_rules(rules, leaves, options));
  SpecTree tree;
  for (std::size_t i = 0; i < paths.size(); ++i) tree.emplace(paths[i], std::move(specs[i]));
  return tree;
}

Result<SpecTree> match_partition_rules(const PartitionRules& rules, const Tree& tree,
                                       const RuleOptions& options) {
  CAIRN_TRY_ASSIGN(const auto leaves, flatten(tree));
  std::vector<KeyPath> paths;
  std::vector<const Shape*> shapes;
  for (const NamedLeaf& leaf : leaves) {
    const auto* array = std::get_if<ShardedArray>(&leaf.leaf);
    paths.push_back(leaf.path);
    shapes.push_back(array != nullptr ? &array->shape() : nullptr);
  }
  return match_partition_rules(rules, paths, shapes, options);
}

Result<ShardingTree> shardings_on(const Mesh& mesh, const SpecTree& specs) {
  ShardingTree tree;
  for (const auto& [path, spec] : specs) {
    CAIRN_TRY_ASSIGN(auto sharding,
                     NamedSharding::make(mesh, spec).in([&] { return in_leaf(path); }));
    tree.emplace(path, std::move(sharding));
  }
  return tree;
}

Result<Tree> apply_sharding_tree(Tree tree, const ShardingTree& shardings, int rank) {
  return map_leaves(std::move(tree), [&](const KeyPath& path, const Leaf& leaf) -> Result<Leaf> {
    const auto* array = std::get_if<ShardedArray>(&leaf);
    const auto found = shardings.find(path);
    if (array == nullptr || found == shardings.end()) return leaf;
    if (!array->whole()) {
      return Error(Code::kFailedPrecondition, "sharding/not-whole",
                   fmt::format("leaf {} is not whole in this process, so it cannot be cut here; "
                               "save it and load it with the sharding that is wanted",
                               path.text()));
    }
    CAIRN_TRY_ASSIGN(auto sharded, make_sharded(array->dtype(), array->shape(), found->second, rank,
                                                [&](const Box& box) -> Result<Array> {
                                                  return array->array().slice(box);
                                                })
                                       .in([&] { return in_leaf(path); }));
    return Leaf(std::move(sharded));
  });
}

Result<void> validate_sharding_tree(const ShardingTree& shardings, const Tree& tree) {
  CAIRN_TRY_ASSIGN(const auto leaves, flatten(tree));
  std::string problems;
  const auto add = [&](const std::string& problem) {
    problems += (problems.empty() ? "" : "; ") + problem;
  };
  std::size_t found = 0;
  std::map<KeyPath, bool> arrays;
  for (const NamedLeaf& leaf : leaves) {
    const auto* array = std::get_if<ShardedArray>(&leaf.leaf);
    if (array == nullptr) continue;
    arrays.emplace(leaf.path, true);
    const auto sharding = shardings.find(leaf.path);
    if (sharding == shardings.end()) {
      add(fmt::format("no sharding for leaf {}", leaf.path.text()));
      continue;
    }
    ++found;
    if (const auto fits = sharding->second.check(array->shape()); !fits)
      add(fmt::format("leaf {}: {}", leaf.path.text(), fits.error().to_string()));
  }
  if (found != shardings.size()) {
    for (const auto& [path, sharding] : shardings) {
      if (!arrays.contains(path)) add(fmt::format("no array for sharding {}", path.text()));
    }
  }
  if (problems.empty()) return {};
  return Error(Code::kFailedPrecondition, "sharding/tree-mismatch", std::move(problems));
}

Result<SpecTree> wished_specs(const Tree& tree, const ShardingTree* shardings,
                              const PartitionRules* rules, const Mesh* mesh) {
  SpecTree specs;
  if (shardings != nullptr) {
    CAIRN_TRY(validate_sharding_tree(*shardings, tree));
    for (const auto& [path, sharding] : *shardings) {
      if (const NamedSharding* named = sharding.named()) specs.emplace(path, named->spec());
    }
    return specs;
  }
  if (rules == nullptr) return specs;
  CAIRN_TRY_ASSIGN(const auto matched, match_partition_rules(*rules, tree));
  CAIRN_TRY_ASSIGN(const auto leaves, flatten(tree));
  for (const NamedLeaf& leaf : leaves) {
    if (is_array_like(leaf.leaf)) specs.emplace(leaf.path, matched.at(leaf.path));
  }
  if (mesh != nullptr) {
    CAIRN_TRY_ASSIGN(const auto placed, shardings_on(*mesh, specs));
    CAIRN_TRY(validate_sharding_tree(placed, tree));
  }
  return specs;
}

Result<ShardAndGather> make_shard_and_gather_fns(const Mesh& mesh, const SpecTree& specs) {
  ShardAndGather both;
  CAIRN_TRY_ASSIGN(both.shard, shardings_on(mesh, specs));
  for (const auto& [path, spec] : specs) both.gather.emplace(path, Sharding());
  return both;
}

}  // namespace cairn
