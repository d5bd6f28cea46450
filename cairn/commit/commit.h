// SPDX-License-Identifier: Apache-2.0
// How a save becomes visible on a file system, whole or not at all. docs/format/commit.md is the
// long form.
//
//  1. Born, under the lock <dest>/.cairn-lock: the directory .cairn-<id>/ with attempt.json, whose
//     lock the writer holds for as long as it lives. Directories made here and their parents are
//     synced.
//  2. Data goes into .cairn-<id>/new/, laid out as it will stand in the destination, and is synced.
//  3. Commit, with the guard of the run if there is one, under the lock again: decided attempts of
//  others are finished first; the record is
//     read again and a prefix that changed since birth refuses the commit; index and record are
//     merged; all JSON is staged in new/ (the mark as metadata.json.new) and synced.
//  4. The decision: outcome.json, written aside, synced, linked to its name exclusively, directory
//     synced. Before it nothing outside the attempt has changed; after it the save has happened.
//  5. The moves it lists, each repeatable (a move is undone exactly while its source lies in new/):
//     mark out, old entries out to old/, new entries in, JSON in, record in, mark in; directories
//     synced in between.
//  6. The attempt is renamed into .cairn-trash/, synced, and only then emptied.
//
// Recovery is 5 and 6 again. Readers take no lock: `snapshot.h` is what they see.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/base/clock.h"
#include "cairn/base/json.h"
#include "cairn/base/uri.h"
#include "cairn/commit/attempt_view.h"
#include "cairn/commit/commit_guard.h"
#include "cairn/manifest/record.h"
#include "cairn/storage/local/file_system.h"
#include "cairn/storage/store.h"

namespace cairn {

struct AttemptOptions {
  std::vector<std::string> prefixes = {};  ///< that this save writes
  std::string run_id = {};
  int ranks = 1;  ///< more than one: they meet as attempt_rank.h says
  std::chrono::nanoseconds lock_timeout = std::chrono::seconds(60);
  CommitGuard guard = {};  ///< taken by commit(), before the destination's lock
};

/// What a prefix of this save becomes.
struct CommitPrefix {
  RecordPrefix record = {};  ///< all fields but `attempt`
  std::optional<Json>
      arrays;  ///< its list in tensorstore_index.json; nothing: it has no entry there
};

struct CommitRequest {
  std::vector<CommitPrefix> prefixes = {};
  std::optional<std::int64_t> step = {};
  std::optional<std::string> checkpoint_metadata = {};  ///< text of checkpoint_metadata.json
  std::optional<std::string> mark = {};  ///< text of metadata.json; nothing: left as it is
};

/// One save on its way in one destination. Destroyed undecided: abandoned, and its files removed.
/// With several ranks, once one of them has abandoned it, its outcome stays for the others to read;
/// a save after they have ended removes it.
/// Threading: compatible; data() is safe.
class Attempt {
 public:
  /// Steps 1. Finishes what others decided and left first. `dest` is made if it is not there.
  /// `failed_precondition` (commit/locks-unsupported), `deadline_exceeded` (commit/lock-timeout,
  /// names the holder), `already_exists` (commit/foreign-entry: something that is no checkpoint
  /// stands where a prefix would go), `failed_precondition` (commit/symlink: a link stands there),
  /// `invalid_argument` (prefix/nested).
  static Result<std::unique_ptr<Attempt>> begin(storage::FileSystem& fs, Clock& clock,
                                                const LocalPath& dest,
                                                const AttemptOptions& options);
  virtual ~Attempt() = default;

  virtual const std::string& id() const = 0;
  /// Where the data goes: the store of new/. sync() it before commit().
  virtual storage::Store& data() = 0;
  /// Steps 3 to 6. `already_exists` (commit/prefix-changed) if somebody else committed one of the
  /// prefixes since begin(); the error that another rank abandoned it with, if one did. An error
  /// before the decision leaves everything as it was; one after it is not an error: the rest is
  /// done by whoever opens the directory for writing next.
  virtual Result<void> commit(const CommitRequest& request) = 0;
};

/// Finishes decided attempts, removes those of dead writers and what abandoned ones left. For
/// whoever opens a directory for writing; begin() does the first part by itself.
Result<RecoveryReport> recover(storage::FileSystem& fs, Clock& clock, const LocalPath& dest);

}  // namespace cairn
