// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/posix_run_directory.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/commit/posix/file_owner.h"
#include "cairn/commit/posix/locked_checkpoint.h"
#include "cairn/commit/posix/moves.h"
#include "cairn/commit/posix/posix_destination.h"
#include "cairn/commit/posix/take_out.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/commit/process_name.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

using Takes = RemovalPlan::Takes;

Result<void> look_into(const Directory& directory, Debris& debris) {
  CAIRN_TRY_ASSIGN(const auto attempts, find_attempts(directory));
  for (const FoundAttempt& attempt : attempts) {
    const AttemptState state = attempt.view.state;
    if (state == AttemptState::kDead || state == AttemptState::kAbandoned)
      debris.attempts.push_back(directory.path_of(attempt.directory));
    debris.decided = debris.decided || state == AttemptState::kDecided;
  }
  const std::string trash(kTrashName);
  CAIRN_TRY_ASSIGN(const bool there, directory.exists(trash));
  if (there) debris.trash = directory.path_of(trash);
  CAIRN_TRY_ASSIGN(const bool hardly_begun, is_hardly_begun(directory));
  if (hardly_begun && !debris.name.empty()) debris.attempts.push_back(directory.path());
  return {};
}

/// A mark over a save that did not finish would be believed once the attempt that tells otherwise
/// is gone.
Result<void> disarm_mark(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const Snapshot now, take_snapshot(dest.fs(), dest.local()));
  if (!now.torn || !now.mark) return {};
  CAIRN_TRY(dest.rename(std::string(kMarkName), std::string(kTornMarkName)));
  return dest.sync();
}

/// REQUIRES: the lock is held.
Result<void> clean_locked(const Directory& dest) {
  CAIRN_TRY(finish_all_decided(dest));
  CAIRN_TRY(disarm_mark(dest));
  CAIRN_TRY(recover_locked(dest));
  return {};
}

Result<void> clean_child(const Directory& run, const std::string& name, const CommitGuard& guard,
                         Clock& clock) {
  CAIRN_TRY_ASSIGN(const auto held, lock_checkpoint(run, name, guard, clock));
  if (!held) return {};
  CAIRN_TRY(clean_locked(held->dest));
  CAIRN_TRY_ASSIGN(const bool hardly_begun, is_hardly_begun(held->dest));
  return hardly_begun ? bury_or_remove(run, name, new_id()) : Result<void>();
}

Result<void> clean_run(const Directory& run, const CommitGuard& guard, Clock& clock) {
  CAIRN_TRY_ASSIGN(const auto allowed, take_guard(guard));
  CAIRN_TRY_ASSIGN(const auto lock, DirectoryLock::acquire(run, clock, kLockTimeout));
  return clean_locked(run);
}

class PosixRunDirectory final : public RunDirectory {
 public:
  PosixRunDirectory(storage::FileSystem& fs, Clock& clock, LocalPath path)
      : fs_(fs), clock_(clock), path_(std::move(path)) {}

  const std::string& path() const override { return path_; }

  std::unique_ptr<Destination> checkpoint(const std::string& name) const override {
    return open_posix_destination(fs_, clock_, name.empty() ? path_ : path_.below(name));
  }

  Result<std::string> name_of(const std::string& path) const override {
    CAIRN_TRY_ASSIGN(const LocalPath local, LocalPath::parse(path));
    std::string name = local.name();
    CAIRN_TRY_ASSIGN(const auto mine, fs_.stat(nullptr, path_, true));
    const auto parent = fs_.stat(nullptr, local.parent(), true);
    const bool child = parent && parent->inode == mine.inode && parent->device == mine.device &&
                       !name.empty() && name.front() != '.';
    if (child) return name;
    return Error(
        Code::kInvalidArgument, "removal/outside",
        fmt::format("'{}' is no direct child of the run directory {}", path, path_.text()));
  }

  Result<std::optional<Space>> space() const override {
    CAIRN_TRY_ASSIGN(const Directory run, open());
    CAIRN_TRY_ASSIGN(const auto space, fs_.space(*run.handle()));
    return std::optional(Space{space.available, space.total});
  }

  Result<std::shared_ptr<RunOwner>> take(const OwnershipOptions& options) override {
    return take_file_owner(fs_, clock_, path_, options);
  }

  Result<std::optional<SeenOwner>> find_owner() const override {
    return find_file_owner(fs_, path_);
  }

  Result<std::optional<Takes>> remove(const std::string& name, const RemovalTerms& terms) override {
    CAIRN_TRY_ASSIGN(const Directory run, open());
    CAIRN_TRY_ASSIGN(const auto held, lock_checkpoint(run, name, terms.guard, clock_, terms.known));
    if (!held) return std::optional<Takes>();
    const Directory& dest = held->dest;
    CAIRN_TRY(finish_all_decided(dest));
    CAIRN_TRY_ASSIGN(const Snapshot now, take_snapshot(fs_, dest.local()));
    CAIRN_TRY_ASSIGN(const RemovalPlan plan, terms.decide(*checkpoint(name), now));
    if (plan.takes == Takes::kNothing) return std::optional(plan.takes);
    if (plan.takes == Takes::kAll) {
      const auto buried = bury(run, name, new_id());
      if (buried) return std::optional(plan.takes);
      if (!is_unmovable(buried)) return buried.error();
    }
    CAIRN_TRY(recover_locked(dest));
    CAIRN_TRY(take_out(dest, now.record.value_or(Record{}), plan.beside, clock_));
    if (plan.takes == Takes::kAll) CAIRN_TRY(run.remove_tree(name));
    return std::optional(plan.takes);
  }

  Result<std::uint64_t> empty_trash() override {
    CAIRN_TRY_ASSIGN(const Directory run, open());
    const std::string trash(kTrashName);
    CAIRN_TRY_ASSIGN(const bool there, run.exists(trash));
    if (!there) return std::uint64_t{0};
    std::vector<storage::DirEntry> dead;
    {
      // Attempts are born in the trash, under the lock: what lies there now is waiting for its end.
      CAIRN_TRY_ASSIGN(const auto lock, DirectoryLock::acquire(run, clock_, kLockTimeout));
      auto listed = run.list(trash);
      if (!listed && listed.error().code() != Code::kNotFound) return std::move(listed).error();
      if (listed) dead = *std::move(listed);
    }
    for (const storage::DirEntry& entry : dead)
      CAIRN_TRY(run.remove_tree(trash + "/" + entry.name));
    CAIRN_TRY_ASSIGN(const auto lock, DirectoryLock::acquire(run, clock_, kLockTimeout));
    fs_.remove_directory(run.handle(), trash).ignore_error("more may have come meanwhile");
    return static_cast<std::uint64_t>(dead.size());
  }

  Result<std::vector<Debris>> find_debris() const override {
    CAIRN_TRY_ASSIGN(const Directory run, open());
    CAIRN_TRY_ASSIGN(const auto children, run.list());
    std::vector<Debris> all(1);
    for (const storage::DirEntry& child : children) {
      if (child.kind == storage::FileKind::kDirectory && !child.name.starts_with('.'))
        all.push_back({.name = child.name});
    }
    for (Debris& debris : all) {
      const auto place = debris.name.empty() ? Result<Directory>(run) : run.open_below(debris.name);
      if (place) look_into(*place, debris).ignore_error("a listing says what is wrong with it");
    }
    std::erase_if(all, [](const Debris& debris) {
      return debris.attempts.empty() && debris.trash.empty() && !debris.decided;
    });
    return all;
  }

  Result<std::vector<std::string>> clean(const Debris& debris, const CommitGuard& guard) override {
    CAIRN_TRY_ASSIGN(const Directory run, open());
    if (!debris.name.empty()) {
      CAIRN_TRY(clean_child(run, debris.name, guard, clock_));
    } else if (!debris.attempts.empty() || debris.decided) {
      CAIRN_TRY(clean_run(run, guard, clock_));
    }
    std::vector<std::string> kept;
    for (const std::string& attempt : debris.attempts) {
      if (fs_.stat(nullptr, attempt, false)) kept.push_back(attempt);
    }
    return kept;
  }

 private:
  Result<Directory> open() const { return Directory::open(fs_, path_, false); }

  storage::FileSystem& fs_;
  Clock& clock_;
  const LocalPath path_;
};

}  // namespace

std::unique_ptr<RunDirectory> open_posix_run(storage::FileSystem& fs, Clock& clock,
                                             LocalPath path) {
  return std::make_unique<PosixRunDirectory>(fs, clock, std::move(path));
}

}  // namespace cairn
