// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/leftovers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/moves.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/commit/process_name.h"
#include "cairn/manifest/names.h"
#include "cairn/run/apply_retention.h"
#include "cairn/run/locked_checkpoint.h"
#include "cairn/run/own_files.h"
#include "cairn/run/removal.h"

namespace cairn {

namespace {

/// A directory that may be a checkpoint, "." for that of the run, and what lies in it.
struct Place {
  std::string name;
  std::vector<Leftover> found = {};
  bool decided = false;  ///< a save has happened whose writer did not put all of it in its place
};

/// Nothing but the lock: a save had hardly begun.
Result<bool> is_empty(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const auto names, dest.list());
  return names.size() == 1 && names.front().name == kLockName;
}

Result<void> look_into(const Directory& directory, Place& place) {
  CAIRN_TRY_ASSIGN(const auto attempts, find_attempts(directory));
  for (const FoundAttempt& attempt : attempts) {
    const AttemptState state = attempt.view.state;
    if (state == AttemptState::kDead || state == AttemptState::kAbandoned)
      place.found.push_back({Leftover::Kind::kAttempt, directory.path_of(attempt.directory)});
    place.decided = place.decided || state == AttemptState::kDecided;
  }
  const std::string trash(kTrashName);
  CAIRN_TRY_ASSIGN(const bool there, directory.exists(trash));
  if (there) place.found.push_back({Leftover::Kind::kTrash, directory.path_of(trash)});
  CAIRN_TRY_ASSIGN(const bool empty, is_empty(directory));
  if (empty && place.name != ".")
    place.found.push_back({Leftover::Kind::kAttempt, directory.path()});
  return {};
}

Result<std::vector<Place>> find_debris(const Directory& run) {
  CAIRN_TRY_ASSIGN(const auto children, run.list());
  std::vector<Place> places{{"."}};
  for (const storage::DirEntry& child : children) {
    if (child.kind == storage::FileKind::kDirectory && !child.name.starts_with('.'))
      places.push_back({child.name});
  }
  for (Place& place : places) {
    const auto directory = place.name == "." ? Result<Directory>(run) : run.open_below(place.name);
    if (directory) look_into(*directory, place).ignore_error("list_run() says what is wrong");
  }
  std::erase_if(places, [](const Place& place) { return place.found.empty() && !place.decided; });
  return places;
}

Result<std::vector<Leftover>> find_temporaries(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto verdicts, apply_retention(base, {.dry_run = true}, runtime));
  std::vector<Leftover> found;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.keep) found.push_back({Leftover::Kind::kTemporary, verdict.entry.run.path});
  }
  return found;
}

/// A mark over a save that did not finish would be believed once the attempt that tells otherwise
/// is gone.
Result<void> disarm_mark(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const Snapshot now, take_snapshot(dest.fs(), dest.local()));
  if (!now.torn || !now.mark) return {};
  CAIRN_TRY(dest.rename(std::string(kMarkName), std::string(kTornMarkName)));
  return dest.sync();
}

Result<void> clean_child(const Directory& run, const std::string& name, const CommitGuard& guard,
                         Clock& clock) {
  CAIRN_TRY_ASSIGN(const auto held, lock_checkpoint(run, name, guard, clock));
  if (!held) return {};
  CAIRN_TRY(finish_all_decided(held->dest));
  CAIRN_TRY(disarm_mark(held->dest));
  CAIRN_TRY(recover_locked(held->dest));
  CAIRN_TRY_ASSIGN(const bool empty, is_empty(held->dest));
  return empty ? bury_or_remove(run, name, new_id()) : Result<void>();
}

Result<void> clean_run(const Directory& run, const CommitGuard& guard, Clock& clock) {
  CAIRN_TRY_ASSIGN(const auto allowed, take_guard(guard));
  CAIRN_TRY_ASSIGN(const auto lock, DirectoryLock::acquire(run, clock, std::chrono::seconds(60)));
  CAIRN_TRY(finish_all_decided(run));
  CAIRN_TRY(disarm_mark(run));
  CAIRN_TRY(recover_locked(run));
  return {};
}

Result<void> clean_place(const Directory& run, const Place& place, const CommitGuard& guard,
                         Runtime& runtime) {
  if (place.name != ".") return clean_child(run, place.name, guard, runtime.clock());
  const bool attempts = std::ranges::any_of(place.found, [](const Leftover& leftover) {
    return leftover.kind == Leftover::Kind::kAttempt;
  });
  // The trash of the run is emptied without its lock: it can hold whole checkpoints.
  return attempts || place.decided ? clean_run(run, guard, runtime.clock()) : Result<void>();
}

void add_problems(const Result<void>& cleaned, storage::FileSystem& fs, Place& place) {
  for (Leftover& leftover : place.found) {
    const bool kept = leftover.kind == Leftover::Kind::kAttempt &&
                      fs.stat(nullptr, leftover.path, false).has_value();
    if (!cleaned) leftover.problem = cleaned.error().to_string();
    if (cleaned && kept) leftover.problem = "a rank that took part in it still lives";
  }
}

}  // namespace

Result<std::vector<Leftover>> find_leftovers(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Directory run, open_run(base, runtime));
  CAIRN_TRY_ASSIGN(auto places, find_debris(run));
  std::vector<Leftover> found;
  for (Place& place : places) std::ranges::move(place.found, std::back_inserter(found));
  CAIRN_TRY_ASSIGN(auto temporaries, find_temporaries(base, runtime));
  std::ranges::move(temporaries, std::back_inserter(found));
  return found;
}

Result<std::vector<Leftover>> clean_leftovers(const std::string& base, const CommitGuard& guard,
                                              Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Directory run, open_run(base, runtime));
  CAIRN_TRY_ASSIGN(auto places, find_debris(run));
  std::vector<Leftover> done;
  for (Place& place : places) {
    add_problems(clean_place(run, place, guard, runtime), run.fs(), place);
    std::ranges::move(place.found, std::back_inserter(done));
  }
  CAIRN_TRY_ASSIGN(const auto temporaries, find_temporaries(base, runtime));
  for (Leftover leftover : temporaries) {
    const auto removed = remove_checkpoint(base, leftover.path,
                                           {.only_if_temporary = true, .guard = guard}, runtime);
    if (!removed) leftover.problem = removed.error().to_string();
    if (removed && *removed == Removal::kNotTemporary) continue;
    done.push_back(std::move(leftover));
  }
  CAIRN_TRY(empty_trash(base, runtime));
  return done;
}

}  // namespace cairn
