// SPDX-License-Identifier: Apache-2.0
// Shardings of trees, as values: which leaf goes where, by key path.
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

/// Specs of all leaves of a tree, by sharding/partition_rules.h. Values that are no arrays count as
/// scalars.
Result<SpecTree> match_partition_rules(const PartitionRules& rules, const Tree& tree,
                                       const RuleOptions& options = {});

/// The same of a list: paths and, at the same places, shapes; null: no array.
Result<SpecTree> match_partition_rules(const PartitionRules& rules,
                                       const std::vector<KeyPath>& paths,
                                       const std::vector<const Shape*>& shapes,
                                       const RuleOptions& options = {});

/// Specs on a mesh. `invalid_argument` (sharding/unknown-axis, ...), with the leaf.
Result<ShardingTree> shardings_on(const Mesh& mesh, const SpecTree& specs);

/// The tree as `rank` holds it: arrays that are whole here become their boxes of this rank, which
/// are views of the same memory. Leaves that `shardings` does not name stay. `invalid_argument`:
/// what Sharding::check says; `failed_precondition` (sharding/not-whole).
Result<Tree> apply_sharding_tree(Tree tree, const ShardingTree& shardings, int rank);

/// Does each array of the tree have a sharding that fits it, and each sharding an array?
/// `failed_precondition` (sharding/tree-mismatch) that lists every leaf where it is not so.
Result<void> validate_sharding_tree(const ShardingTree& shardings, const Tree& tree);

/// What a caller says of arrays by name; nullopt: no spec, by no rule either.
using SpecWishes = std::map<KeyPath, std::optional<PartitionSpec>>;

/// Specs to store with arrays, as the default of later loads: the `given` ones, for the rest by
/// the rules (null: none). On `mesh`, if there is one, they must fit. `failed_precondition`
/// (sharding/tree-mismatch) lists what does not fit and what is given for no array;
/// `invalid_argument`: rules/no-match and what NamedSharding::make() says.
Result<SpecTree> wished_specs(const std::map<KeyPath, Shape>& arrays, const SpecWishes& given,
                              const PartitionRules* rules, const Mesh* mesh);
/// The same of a tree. `shardings` (null: none) must fit its arrays; those by axes of a mesh are
/// the given specs.
Result<SpecTree> wished_specs(const Tree& tree, const ShardingTree* shardings,
                              const PartitionRules* rules, const Mesh* mesh);

/// What shards a tree and what gathers it again: in `gather` every leaf is whole on rank 0.
struct ShardAndGather {
  ShardingTree shard;
  ShardingTree gather;
};
Result<ShardAndGather> make_shard_and_gather_fns(const Mesh& mesh, const SpecTree& specs);

}  // namespace cairn
