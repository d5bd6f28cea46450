// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/locked_checkpoint.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

Result<void> check_ours(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const Snapshot seen, take_snapshot(dest.fs(), dest.local()));
  CAIRN_TRY_ASSIGN(const auto attempts, find_attempts(dest));
  const bool record = seen.record && !seen.record->prefixes.empty();
  if (record || !attempts.empty()) return {};
  CAIRN_TRY_ASSIGN(const bool trash, dest.exists(std::string(kTrashName)));
  CAIRN_TRY_ASSIGN(const bool hardly_begun, is_hardly_begun(dest));
  if (trash || hardly_begun) return {};
  return Error(Code::kFailedPrecondition, "removal/foreign",
               fmt::format("{} was not saved by cairn, and is left alone", dest.path()));
}

}  // namespace

Result<bool> is_hardly_begun(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const auto names, dest.list());
  return names.size() == 1 && names.front().name == kLockName;
}

Result<std::optional<LockedCheckpoint>> lock_checkpoint(const Directory& base,
                                                        const std::string& name,
                                                        const CommitGuard& guard, Clock& clock,
                                                        bool known) {
  CAIRN_TRY_ASSIGN(auto allowed, take_guard(guard));
  const auto info = base.stat(name);
  if (!info) {
    if (info.error().code() == Code::kNotFound) return std::optional<LockedCheckpoint>();
    return info.error();
  }
  if (info->kind == storage::FileKind::kSymlink) {
    return Error(Code::kFailedPrecondition, "removal/symlink",
                 fmt::format("{} is a symbolic link, and nothing is deleted through one",
                             base.path_of(name)));
  }
  CAIRN_TRY_ASSIGN(Directory dest, base.open_below(name));
  // Before anything is written, be it a lock.
  if (!known) CAIRN_TRY(check_ours(dest));
  CAIRN_TRY_ASSIGN(auto base_lock, DirectoryLock::acquire(base, clock, kLockTimeout));
  auto dest_lock = DirectoryLock::acquire(dest, clock, kLockTimeout);
  if (!dest_lock) {
    const bool gone = dest_lock.error().reason() == "commit/directory-gone";
    if (gone) return std::optional<LockedCheckpoint>();
    return std::move(dest_lock).error();
  }
  return std::optional(LockedCheckpoint{std::move(allowed), std::move(base_lock), std::move(dest),
                                        *std::move(dest_lock)});
}

}  // namespace cairn
