// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/callback_save.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/base/uri.h"
#include "cairn/commit/open.h"
#include "cairn/coord/agreement.h"
#include "cairn/manifest/names.h"
#include "cairn/runtime/in_flight.h"

namespace cairn {

namespace {

/// How many there are. What goes away meanwhile is not there.
Result<std::uint64_t> add_files_of(Destination& place, const std::string& below, Sha256& seen) {
  std::uint64_t files = 0;
  const auto children = place.list(below);
  if (!children && children.error().code() == Code::kNotFound) return files;
  if (!children) return children.error();
  for (const Destination::Child& child : *children) {
    if (below.empty() && child.name.starts_with(kAttemptPrefix)) continue;
    const std::string name = join_path(below, child.name);
    if (child.kind == Destination::Child::Kind::kDirectory) {
      CAIRN_TRY_ASSIGN(const std::uint64_t inside, add_files_of(place, name, seen));
      files += inside;
      continue;
    }
    const auto info = place.stat(name);
    if (!info && info.error().code() == Code::kNotFound) continue;
    if (!info) return info.error();
    seen.update(as_bytes(fmt::format("{} {}\n", name, info->generation)));
    ++files;
  }
  return files;
}

/// Another text once a file below `path` has come, gone, been replaced or written to (by its time);
/// our locks and attempts count for nothing. Empty if there is no file. Looks at every file, and
/// opens none.
Result<std::string> state_of_files(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto place, open_destination(path, runtime));
  Sha256 seen;
  CAIRN_TRY_ASSIGN(const std::uint64_t files, add_files_of(*place, "", seen));
  return files == 0 ? std::string() : seen.hex();
}

// Callbacks may have saved elsewhere, or nothing. Then what lies there is older, and may be
// permanent.
Result<bool> mark_if_saved(const CallbackSave& save, const std::string& before, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const std::string now, state_of_files(save.path, runtime));
  if (now != before) {
    const auto marked = write_mark(save.path, save.mark, save.guard, runtime);
    if (marked) return true;
    if (marked.error().code() != Code::kNotFound) return marked.error();
  }
  runtime.log(LogLevel::kWarning, "checkpointer/nothing-saved",
              fmt::format("the callbacks have saved nothing into {}", save.path));
  return false;
}

}  // namespace

Result<bool> save_by_callbacks(const CallbackSave& save, AsyncCheckpointManager& manager) {
  Runtime& runtime = *manager.runtime();
  wait_for_saves(save.path, runtime.rank());
  // Heard by all, so that nobody's callbacks come before it.
  CAIRN_TRY_ASSIGN(
      const std::string before,
      coord::hear_rank_0(manager.ranks(),
                         runtime.rank() == 0 ? state_of_files(save.path, runtime) : std::string(),
                         "before the callbacks"));
  const auto done = [&]() -> Result<void> {
    for (const CheckpointCallback& callback : save.callbacks)
      CAIRN_TRY(callback(save.path, save.mesh, to_json(save.mark)));
    wait_for_saves(save.path, runtime.rank());
    return manager.wait_until_finished();
  }();
  bool marked = false;
  CAIRN_TRY(coord::agree(manager.ranks(), done, "saves of callbacks", [&]() -> Result<void> {
    CAIRN_TRY_ASSIGN(marked, mark_if_saved(save, before, runtime));
    return {};
  }));
  return marked;
}

}  // namespace cairn
