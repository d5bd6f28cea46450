// SPDX-License-Identifier: Apache-2.0
// Shardings of whole trees, as values: which leaf goes where, by key path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cairn/sharding/partition_rules.h"
#include "cairn/tree/tree.h"

namespace cairn {

using SpecTree = std::map<KeyPath, PartitionSpec>;
using ShardingTree = std::map<KeyPath, Sharding>;

/// A key path as rules see it: its parts joined with '/', nothing encoded.
std::string rule_key(const KeyPath& path);

/// Specs of all leaves of a tree, by sharding/partition_rules.h. Values that are not arrays count
/// as scalars.
Result<SpecTree> match_partition_rules(const PartitionRules& rules, const Tree& tree,
                                       const RuleOptions& options = {});

/// The same for a list: paths and, at the same positions, shapes; null: not an array.
Result<SpecTree> match_partition_rules(const PartitionRules& rules,
                                       const std::vector<KeyPath>& paths,
                                       const std::vector<const Shape*>& shapes,
                                       const RuleOptions& options = {});

/// Specs on a mesh. `invalid_argument` (sharding/unknown-axis, ...), with the leaf.
Result<ShardingTree> shardings_on(const Mesh& mesh, const SpecTree& specs);

/// The tree as `rank` holds it: arrays that are whole here are replaced by the boxes of this rank,
/// as views of the same memory. Leaves that `shardings` does not name stay. `invalid_argument`:
/// those of Sharding::check; `failed_precondition` (sharding/not-whole).
Result<Tree> apply_sharding_tree(Tree tree, const ShardingTree& shardings, int rank);

/// Does each array of the tree have a sharding that fits it, and each sharding an array?
/// `failed_precondition` (sharding/tree-mismatch) lists all exceptions.
Result<void> validate_sharding_tree(const ShardingTree& shardings, const Tree& tree);

/// Specs that a caller gives by name; nullopt: no spec, not even by a rule.
using SpecWishes = std::map<KeyPath, std::optional<PartitionSpec>>;

/// Specs to store with arrays as the default of later loads: the `given` specs, and for other
/// arrays those of the rules (null: none). If there is a `mesh`, they must fit on it.
/// `failed_precondition` (sharding/tree-mismatch) lists specs that do not fit or have no array;
/// `invalid_argument`: rules/no-match and errors of NamedSharding::make().
Result<SpecTree> wished_specs(const std::map<KeyPath, Shape>& arrays, const SpecWishes& given,
                              const PartitionRules* rules, const Mesh* mesh);
/// The same for a tree. `shardings` (null: none) must fit its arrays; shardings by axes of a mesh
/// give the specs.
Result<SpecTree> wished_specs(const Tree& tree, const ShardingTree* shardings,
                              const PartitionRules* rules, const Mesh* mesh);

/// Shardings that shard a tree, and that gather it again: in `gather` every leaf is whole on rank
/// 0.
struct ShardAndGather {
  ShardingTree shard;
  ShardingTree gather;
};
Result<ShardAndGather> make_shard_and_gather_fns(const Mesh& mesh, const SpecTree& specs);

}  // namespace cairn
