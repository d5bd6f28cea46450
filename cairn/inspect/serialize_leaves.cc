// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/serialize_leaves.h"

namespace cairn {

Result<SaveReport> tree_serialize_leaves(const std::string& directory, const Tree& tree,
                                         const SerializeOptions& options, Runtime& runtime) {
  SaveOptions save;
  save.overwrite = true;
  save.write_index = options.write_index;
  CAIRN_TRY_ASSIGN(auto report, save_tree(tree, directory, save, runtime, options.prefix));
  if (options.commit_callback) options.commit_callback();
  return report;
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
