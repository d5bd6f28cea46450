// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load.h"

#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load_opened.h"
#include "cairn/load/load_together.h"

namespace cairn {

Result<Loaded> load(const Checkpoint& checkpoint, const LoadOptions& options, Runtime& runtime) {
  return load_opened(checkpoint, options, runtime, {});
}

Result<Loaded> load(const std::string& path, const LoadOptions& options, Runtime& given) {
  const auto alone = options.use_async ? nullptr : given.on_one_thread();
  Runtime& runtime = alone ? *alone : given;
  if (runtime.ranks() > 1) return load_together(path, options, runtime);
  CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_checkpoint(path, runtime));
  return read_settled(checkpoint, runtime,
                      [&](const Checkpoint& opened) { return load(opened, options, runtime); });
}

}  // namespace cairn
