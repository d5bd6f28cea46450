// SPDX-License-Identifier: Apache-2.0
// How a save becomes visible on a file system, whole or not at all. docs/format/commit.md is the
// long form.
//
//  1. Born, under the lock <dest>/.cairn-lock: the directory .cairn-<id>/ with attempt.json, whose
//     lock the writer holds for as long as it lives. Directories made here and their parents are
//     synced.
//  2. Data goes into .cairn-<id>/new/, laid out as it will stand in the destination, and is synced.
//  3. Commit, with the guard of the run if there is one, under the lock again: decided attempts of
//     others are finished first; the record is read again and a prefix that changed since birth
//     refuses the commit; index and record are merged; all JSON is staged in new/ (the mark as
//     metadata.json.new) and synced.
//  4. The decision: outcome.json, written aside, synced, linked to its name exclusively, directory
//     synced. Before it nothing outside the attempt has changed; after it the save has happened.
//  5. The moves it lists, each repeatable (a move is undone exactly while its source lies in new/):
//     mark out, old entries out to old/, new entries in, JSON in, record in, mark in; directories
//     synced in between.
//  6. The attempt is renamed into .cairn-trash/, synced, and only then emptied.
//
// Recovery is 5 and 6 again. Readers take no lock: posix/take_snapshot.h is what they see.
#pragma once

#include <memory>

#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/commit/attempt_view.h"
#include "cairn/commit/commit.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// Step 1. Finishes what others decided and left first. `dest` is made if it is not there.
/// `failed_precondition` (commit/locks-unsupported), `deadline_exceeded` (commit/lock-timeout,
/// names the holder), `already_exists` (commit/foreign-entry: something that is no checkpoint
/// stands where a prefix would go), `failed_precondition` (commit/symlink: a link stands there),
/// `invalid_argument` (prefix/nested). `fs` and `clock` must outlive it.
Result<std::unique_ptr<Attempt>> begin_attempt(storage::FileSystem& fs, Clock& clock,
                                               const LocalPath& dest,
                                               const AttemptOptions& options);

/// Finishes decided attempts, and removes those of dead writers and what abandoned ones left.
/// begin_attempt() does this by itself.
Result<RecoveryReport> recover(storage::FileSystem& fs, Clock& clock, const LocalPath& dest);

}  // namespace cairn
