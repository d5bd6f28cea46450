// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/save.h"

#include "cairn/runtime/in_flight.h"
#include "cairn/save/start_save.h"

namespace cairn {

Result<SaveReport> save_checkpoint(const std::vector<NamedTree>& trees, const std::string& path,
                                   const SaveOptions& options, Runtime& runtime,
                                   const SaveInternals* internals) {
  wait_for_saves(path, runtime.rank());
  const auto save = [&]() -> Result<SaveReport> {
    CAIRN_TRY_ASSIGN(const auto steps,
                     start_save(trees, path, options, runtime,
                                internals != nullptr ? *internals : SaveInternals()));
    return save_now(*steps, runtime);
  };
  CAIRN_TRY_ASSIGN(SaveReport report, save().in([&] { return "saving " + path; }));
  if (options.committed) CAIRN_TRY(options.committed(report));
  return report;
}

Result<SaveReport> save_tree(const Tree& tree, const std::string& path, const SaveOptions& options,
                             Runtime& runtime, const std::string& prefix) {
  return save_checkpoint({{prefix, tree}}, path, options, runtime);
}

}  // namespace cairn
