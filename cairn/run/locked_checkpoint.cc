// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/locked_checkpoint.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

Error outside(const Directory& base, const std::string& path) {
  return Error(Code::kInvalidArgument, "removal/outside",
               fmt::format("'{}' is no direct child of the run directory {}", path, base.path()));
}

Result<void> check_ours(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const Snapshot seen, take_snapshot(dest.fs(), dest.local()));
  CAIRN_TRY_ASSIGN(const auto attempts, find_attempts(dest));
  const bool record = seen.record && !seen.record->prefixes.empty();
  if (record || !attempts.empty()) return {};
  // What is left of a save that had hardly begun.
  CAIRN_TRY_ASSIGN(const auto names, dest.list());
  if (std::ranges::find(names, kTrashName, &storage::DirEntry::name) != names.end()) return {};
  if (names.size() == 1 && names.front().name == kLockName) return {};
  return Error(Code::kFailedPrecondition, "removal/foreign",
               fmt::format("{} was not saved by cairn, and is left alone", dest.path()));
}

}  // namespace

Result<Directory> open_run(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const LocalPath local, LocalPath::parse(base));
  return Directory::open(runtime.file_system(), local, false);
}

Result<std::string> name_in_run(const Directory& base, const std::string& path) {
  CAIRN_TRY_ASSIGN(const LocalPath local, LocalPath::parse(path));
  std::string name = local.name();
  if (name.empty() || name.front() == '.') return outside(base, path);
  CAIRN_TRY_ASSIGN(const auto mine, base.stat("."));
  const auto there = base.fs().stat(nullptr, local.parent(), true);
  if (!there || there->inode != mine.inode || there->device != mine.device)
    return outside(base, path);
  return name;
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
