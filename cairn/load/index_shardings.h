// SPDX-License-Identifier: Apache-2.0
// Shardings for what a checkpoint has, before it is loaded.
#pragma once

#include <optional>
#include <string>

#include "cairn/layout/checkpoint.h"
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

}  // namespace cairn
