// SPDX-License-Identifier: Apache-2.0
// The core of the reference system in both directions, with its names and arguments: a tree of
// arrays as zarr v2 directories `<directory>/<prefix>/a/b/c`, and the index that lists them.
// save/save.h and load/load.h offer everything else too.
#pragma once

#include <optional>
#include <string>

#include "cairn/load/load.h"
#include "cairn/save/save.h"

namespace cairn {

/// save_tree() with SaveOptions::overwrite set: replaces what is there, even a tree with other
/// leaves.
Result<SaveReport> tree_serialize_leaves(const std::string& directory, const Tree& tree,
                                         SaveOptions options, Runtime& runtime,
                                         const std::string& prefix = "");

struct DeserializeOptions {
  std::optional<Mesh> mesh = {};
  std::optional<std::string> prefix = {};
  const PartitionRules* partition_rules = nullptr;
  const ShardingTree* shardings = nullptr;
  LeafCallback callback = {};
  std::size_t chunk_size = 0;
};

/// The tree with what load() reports of it. Errors of load().
Result<Loaded> tree_deserialize_leaves(const std::string& directory,
                                       const DeserializeOptions& options, Runtime& runtime);

}  // namespace cairn
