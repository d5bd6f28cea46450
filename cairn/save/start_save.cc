// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/start_save.h"

#include <utility>

#include "cairn/base/uri.h"
#include "cairn/manifest/names.h"
#include "cairn/save/save_together.h"

namespace cairn {

namespace {

/// Ranks compare it, and reports name it: without slashes at its end.
Result<Uri> destination_of(const std::string& path) {
  CAIRN_TRY_ASSIGN(Uri uri, parse_uri(path));
  while (uri.path.size() > 1 && uri.path.ends_with('/')) uri.path.pop_back();
  return uri;
}

}  // namespace

Result<std::unique_ptr<SaveSteps>> start_save(const std::vector<NamedTree>& trees,
                                              const std::string& path, SaveOptions options,
                                              Runtime& runtime, SaveInternals internals) {
  if (is_bare_file(path)) options.layout = kSafetensorsLayout;
  auto prepared = prepare_trees(trees, path, options, internals, runtime);
  const auto uri = destination_of(path);
  if (runtime.ranks() > 1) {
    // What is no path has made `prepared` an error.
    return save_together(std::move(prepared), uri ? *uri : Uri(), std::move(options), runtime,
                         std::move(internals));
  }
  CAIRN_TRY(prepared);
  return save_alone(*std::move(prepared), *uri, std::move(options), runtime, std::move(internals));
}

}  // namespace cairn
