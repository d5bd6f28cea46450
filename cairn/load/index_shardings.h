// SPDX-License-Identifier: Apache-2.0
// Shardings for the arrays of a checkpoint, before it is loaded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/load/load_options.h"
#include "cairn/tree/sharding_tree.h"

namespace cairn {

struct ShardingTreeOptions {
  std::optional<std::string> prefix = {};           ///< which tree of the checkpoint
  const PartitionRules* partition_rules = nullptr;  ///< null: `spec` for every leaf
  PartitionSpec spec = {};
};

/// Shardings for the arrays that a checkpoint has. `invalid_argument` for what does not fit a leaf.
Result<ShardingTree> create_sharding_tree_from_index(const Checkpoint& checkpoint, const Mesh& mesh,
                                                     const ShardingTreeOptions& options = {});

/// How load() would place each array of a tree, in the order of its manifest; nothing is read.
/// Templates do not count. Errors of load() about shardings.
Result<std::vector<Sharding>> load_shardings(const OpenedPrefix& prefix,
                                             const LoadOptions& options);

}  // namespace cairn
