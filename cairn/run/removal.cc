// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/removal.h"

#include <vector>

#include <fmt/format.h>

#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/moves.h"
#include "cairn/commit/posix/take_out.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/commit/process_name.h"
#include "cairn/manifest/names.h"
#include "cairn/run/locked_checkpoint.h"
#include "cairn/run/mark.h"
#include "cairn/run/own_files.h"

namespace cairn {

namespace {

Result<void> check_not_pinned(const Directory& dest) {
  const std::string name(kPinName);
  CAIRN_TRY_ASSIGN(const bool pinned, dest.exists(name));
  if (!pinned) return {};
  const auto reason = dest.read(name, 4 * kKiB);
  const bool known = reason && *reason && !(*reason)->empty();
  return Error(Code::kFailedPrecondition, "removal/pinned",
               fmt::format("{} is pinned{}; unpin it first", dest.path(),
                           known ? fmt::format(" ({})", **reason) : std::string()));
}

Result<void> check_not_busy(const Directory& dest, const Snapshot& now) {
  for (const AttemptView& attempt : now.attempts) {
    if (attempt.state != AttemptState::kAlive) continue;
    return Error(
        Code::kFailedPrecondition, "removal/busy",
        fmt::format("process {} on {} saves into {}", attempt.process, attempt.host, dest.path()));
  }
  return {};
}

bool is_temporary(const Snapshot& now) {
  const auto mark = now.mark ? parse_mark(*now.mark) : Mark{};
  return mark && mark->is_temporary;
}

Result<Removal> remove_locked(const Directory& base, const std::string& name, const Directory& dest,
                              const RemovalOptions& options, Clock& clock) {
  CAIRN_TRY(finish_all_decided(dest));
  CAIRN_TRY_ASSIGN(const Snapshot now, take_snapshot(dest.fs(), dest.local()));
  CAIRN_TRY(check_not_pinned(dest));
  CAIRN_TRY(check_not_busy(dest, now));
  if (options.only_if_temporary && !is_temporary(now)) return Removal::kNotTemporary;
  const bool whole = options.with_other_files || is_temporary(now);
  const Record record = now.record.value_or(Record{});
  CAIRN_TRY_ASSIGN(const OwnFiles own, find_own_files(dest, record));
  const bool recorded = options.known || !record.prefixes.empty();
  const bool alone = own.other.empty() && !own.shared;
  if (!alone && (!recorded || (own.shared && !whole))) {
    return Error(Code::kFailedPrecondition, "removal/foreign",
                 fmt::format("{} holds what cairn did not save ({}), and is left alone",
                             dest.path(), own.shared ? std::string(kIndexName) : own.other));
  }
  if (alone || whole) {
    auto buried = bury(base, name, new_id());
    if (!is_unmovable(buried)) return buried ? Result<Removal>(Removal::kRemoved) : buried.error();
  }
  CAIRN_TRY(recover_locked(dest));
  CAIRN_TRY(take_out(dest, record, own.beside, clock));
  if (!alone && !whole) return Removal::kOthersStay;
  CAIRN_TRY(base.remove_tree(name));
  return Removal::kRemoved;
}

}  // namespace

Result<Removal> remove_checkpoint(const std::string& base, const std::string& path,
                                  const RemovalOptions& options, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Directory run, open_run(base, runtime));
  CAIRN_TRY_ASSIGN(const std::string name, name_in_run(run, path));
  CAIRN_TRY_ASSIGN(const auto held,
                   lock_checkpoint(run, name, options.guard, runtime.clock(), options.known));
  if (!held) return Removal::kNotThere;
  return remove_locked(run, name, held->dest, options, runtime.clock());
}

Result<std::uint64_t> empty_trash(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Directory run, open_run(base, runtime));
  const std::string trash(kTrashName);
  CAIRN_TRY_ASSIGN(const bool there, run.exists(trash));
  if (!there) return std::uint64_t{0};
  std::vector<storage::DirEntry> dead;
  {
    // Attempts are born in the trash, under the lock: what lies there now is waiting for its end.
    CAIRN_TRY_ASSIGN(const auto lock,
                     DirectoryLock::acquire(run, runtime.clock(), std::chrono::seconds(60)));
    auto listed = run.list(trash);
    if (!listed && listed.error().code() != Code::kNotFound) return std::move(listed).error();
    if (listed) dead = *std::move(listed);
  }
  for (const storage::DirEntry& entry : dead) CAIRN_TRY(run.remove_tree(trash + "/" + entry.name));
  CAIRN_TRY_ASSIGN(const auto lock,
                   DirectoryLock::acquire(run, runtime.clock(), std::chrono::seconds(60)));
  run.fs().remove_directory(run.handle(), trash).ignore_error("more may have come meanwhile");
  return static_cast<std::uint64_t>(dead.size());
}

}  // namespace cairn
