// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/serialize_leaves.h"

namespace cairn {

Result<SaveReport> tree_serialize_leaves(const std::string& directory, const Tree& tree,
                                         SaveOptions options, Runtime& runtime,
                                         const std::string& prefix) {
  options.overwrite = true;
  return save_tree(tree, directory, options, runtime, prefix);
}

Result<Loaded> tree_deserialize_leaves(const std::string& directory,
                                       const DeserializeOptions& options, Runtime& runtime) {
  LoadOptions load_options;
  load_options.mesh = options.mesh;
  load_options.prefix = options.prefix;
  load_options.partition_rules = options.partition_rules;
  load_options.shardings = options.shardings;
  load_options.callback = options.callback;
  load_options.chunk_size = options.chunk_size;
  return load(directory, load_options, runtime);
}

}  // namespace cairn
