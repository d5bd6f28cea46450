// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/start_save.h"

#include <utility>

#include "cairn/base/uri.h"
#include "cairn/save/save_together.h"

namespace cairn {

Result<std::unique_ptr<SaveSteps>> start_save(const std::vector<NamedTree>& trees,
                                              const std::string& path, SaveOptions options,
                                              Runtime& runtime) {
  if (path.ends_with(".safetensors")) options.layout = kSafetensorsLayout;
  auto prepared = prepare_trees(trees, path, options, runtime);
  if (runtime.ranks() > 1)
    return save_together(std::move(prepared), path, std::move(options), runtime);
  CAIRN_TRY(prepared);
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(path));
  return save_alone(*std::move(prepared), uri, std::move(options), runtime);
}

}  // namespace cairn
