// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/sharding_tree.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "cairn/sharding/make_sharded.h"
#include "cairn/tree/flatten.h"

namespace cairn {

namespace {

std::string in_leaf(const KeyPath& path) { return "leaf " + path.text(); }

std::string no_array(const KeyPath& path) {
  return fmt::format("no array for sharding {}", path.text());
}

/// What is wrong with shardings of a tree.
class Problems {
 public:
  void add(const std::string& problem) { all_ += (all_.empty() ? "" : "; ") + problem; }
  void check(const KeyPath& path, const Sharding& sharding, const Shape& shape) {
    if (const auto fits = sharding.check(shape); !fits)
      add(fmt::format("{}: {}", in_leaf(path), fits.error().to_string()));
  }
  Result<void> result() const {
    if (all_.empty()) return {};
    return Error(Code::kFailedPrecondition, "sharding/tree-mismatch", all_);
  }

 private:
  std::string all_;
};

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
  leaves.reserve(paths.size());
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
                               "save it and load it with the new sharding",
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
  Problems problems;
  std::set<KeyPath> arrays;
  for (const NamedLeaf& leaf : leaves) {
    const auto* array = std::get_if<ShardedArray>(&leaf.leaf);
    if (array == nullptr) continue;
    arrays.insert(leaf.path);
    if (const auto sharding = shardings.find(leaf.path); sharding != shardings.end()) {
      problems.check(leaf.path, sharding->second, array->shape());
    } else {
      problems.add(fmt::format("no sharding for leaf {}", leaf.path.text()));
    }
  }
  for (const auto& [path, sharding] : shardings) {
    if (!arrays.contains(path)) problems.add(no_array(path));
  }
  return problems.result();
}

Result<SpecTree> wished_specs(const std::map<KeyPath, Shape>& arrays, const SpecWishes& given,
                              const PartitionRules* rules, const Mesh* mesh) {
  Problems problems;
  for (const auto& [path, spec] : given) {
    if (!arrays.contains(path)) problems.add(no_array(path));
  }
  SpecTree specs;
  std::vector<KeyPath> rest;
  std::vector<const Shape*> shapes;
  for (const auto& [path, shape] : arrays) {
    if (const auto named = given.find(path); named == given.end()) {
      rest.push_back(path);
      shapes.push_back(&shape);
    } else if (named->second) {
      specs.emplace(path, *named->second);
    }
  }
  if (rules != nullptr) {
    CAIRN_TRY_ASSIGN(auto matched, match_partition_rules(*rules, rest, shapes));
    specs.merge(matched);
  }
  if (mesh != nullptr) {
    CAIRN_TRY_ASSIGN(const auto placed, shardings_on(*mesh, specs));
    for (const auto& [path, sharding] : placed) problems.check(path, sharding, arrays.at(path));
  }
  CAIRN_TRY(problems.result());
  return specs;
}

Result<SpecTree> wished_specs(const Tree& tree, const ShardingTree* shardings,
                              const PartitionRules* rules, const Mesh* mesh) {
  CAIRN_TRY_ASSIGN(const auto leaves, flatten(tree));
  std::map<KeyPath, Shape> arrays;
  for (const NamedLeaf& leaf : leaves) {
    if (const auto* array = std::get_if<ShardedArray>(&leaf.leaf))
      arrays.emplace(leaf.path, array->shape());
  }
  Problems problems;
  SpecWishes given;
  for (const auto& [path, sharding] : shardings != nullptr ? *shardings : ShardingTree()) {
    if (const auto array = arrays.find(path); array != arrays.end())
      problems.check(path, sharding, array->second);
    const NamedSharding* named = sharding.named();
    given.emplace(path, named != nullptr ? std::optional(named->spec()) : std::nullopt);
  }
  CAIRN_TRY(problems.result());
  return wished_specs(arrays, given, rules, mesh);
}

Result<ShardAndGather> make_shard_and_gather_fns(const Mesh& mesh, const SpecTree& specs) {
  ShardAndGather both;
  CAIRN_TRY_ASSIGN(both.shard, shardings_on(mesh, specs));
  for (const auto& [path, spec] : specs) both.gather.emplace(path, Sharding());
  return both;
}

}  // namespace cairn
