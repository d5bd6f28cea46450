// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/callback_save.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/base/uri.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/coord/agreement.h"
#include "cairn/manifest/names.h"
#include "cairn/runtime/in_flight.h"

namespace cairn {

namespace {

/// What goes away meanwhile is not there.
template <typename T>
Result<std::optional<T>> if_there(Result<T> found) {
  if (found) return std::optional(*std::move(found));
  if (found.error().code() == Code::kNotFound) return std::optional<T>();
  return found.error();
}

/// How many there are.
Result<std::uint64_t> add_files_of(const Directory& directory, const std::string& below,
                                   Sha256& seen) {
  std::uint64_t files = 0;
  CAIRN_TRY_ASSIGN(const auto entries, if_there(directory.list(below.empty() ? "." : below)));
  if (!entries) return files;
  for (const storage::DirEntry& entry : *entries) {
    if (below.empty() && entry.name.starts_with(kAttemptPrefix)) continue;
    const std::string name = join_path(below, entry.name);
    CAIRN_TRY_ASSIGN(const auto info, if_there(directory.stat(name)));
    if (!info) continue;
    if (info->kind == storage::FileKind::kDirectory) {
      CAIRN_TRY_ASSIGN(const std::uint64_t inside, add_files_of(directory, name, seen));
      files += inside;
      continue;
    }
    seen.update(
        as_bytes(fmt::format("{} {} {} {}\n", name, info->inode, info->size, info->modified_ns)));
    ++files;
  }
  return files;
}

/// Another text once a file below `path` has come, gone, been replaced or written to (by its time);
/// our locks and attempts count for nothing. Empty if there is no file. Looks at every file, and
/// opens none.
Result<std::string> state_of_files(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const LocalPath local, LocalPath::parse(path));
  CAIRN_TRY_ASSIGN(const auto directory,
                   if_there(Directory::open(runtime.file_system(), local, false)));
  if (!directory) return std::string();
  Sha256 seen;
  CAIRN_TRY_ASSIGN(const std::uint64_t files, add_files_of(*directory, "", seen));
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
