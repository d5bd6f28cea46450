// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/open_argument.h"

#include <fmt/format.h>

#include "cairn/layout/open_checkpoint.h"
#include "cairn/run/discovery.h"

namespace cairn::cli {

Result<Checkpoint> open_argument(const std::string& path, const Terminal& terminal,
                                 Runtime& runtime) {
  auto opened = open_checkpoint(path, runtime);
  // Arrays inside the checkpoints of a run would be found too, but nobody means them.
  const bool loose = opened && opened->kind == "zarr2 arrays";
  const bool nothing = !opened && opened.error().reason() == "checkpoint/not-a-checkpoint";
  if (!loose && !nothing) return opened;
  for (int again = 0;; ++again) {
    const auto latest = find_latest_checkpoint(path, runtime);
    if (!latest || !*latest) return opened;
    auto taken = open_checkpoint(**latest, runtime);
    // A job may save a later one and remove it at any time.
    if (!taken && taken.error().code() == Code::kNotFound && again < kMostReopenings) continue;
    terminal.note(
        fmt::format("{} is a run directory; taking its latest checkpoint, {}", path, **latest));
    return taken;
  }
}

}  // namespace cairn::cli
