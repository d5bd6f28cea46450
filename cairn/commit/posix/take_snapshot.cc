// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/take_snapshot.h"

#include <algorithm>
#include <utility>

#include "cairn/base/sha256.h"
#include "cairn/commit/posix/attempts.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

// A name, or the same below the attempt while it waits there.
Result<std::optional<std::string>> read_staged(const Directory& dest, const std::string& staged,
                                               const std::string& name, std::uint64_t limit) {
  CAIRN_TRY_ASSIGN(auto text, dest.read(staged, limit));
  if (text) return text;
  return dest.read(name, limit);
}

Result<void> add_decided(const Directory& dest, const FoundAttempt& attempt, Snapshot& snapshot) {
  const std::string staged = attempt.directory + "/new/";
  std::vector<std::string> coming = attempt.outcome->in;
  for (const ReplacedFile& file : attempt.outcome->files) coming.push_back(file.name);
  for (const std::string& name : coming) {
    CAIRN_TRY_ASSIGN(const bool waiting, dest.exists(staged + name));
    if (waiting) snapshot.moved.emplace(name, staged + name);
  }
  CAIRN_TRY_ASSIGN(const auto record, read_staged(dest, staged + std::string(kRecordName),
                                                  std::string(kRecordName), kMaxRecordBytes));
  if (record) {
    CAIRN_TRY_ASSIGN(snapshot.record, parse_record(*record));
  }
  // A removal takes the mark out; it may not have come so far.
  if (std::ranges::find(attempt.outcome->out, kMarkName) != attempt.outcome->out.end())
    snapshot.mark.reset();
  if (!attempt.outcome->mark) return {};
  CAIRN_TRY_ASSIGN(snapshot.mark, read_staged(dest, staged + std::string(kStagedMark),
                                              std::string(kMarkName), kMaxMarkBytes));
  return {};
}

bool tears(const FoundAttempt& attempt, const Snapshot& snapshot) {
  if (attempt.view.state != AttemptState::kDead) return false;
  if (!snapshot.mark) return !snapshot.record;
  return attempt.file.mark_sha256 != sha256_hex(as_bytes(*snapshot.mark));
}

Result<std::optional<Record>> record_in_place(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const auto text, dest.read(std::string(kRecordName), kMaxRecordBytes));
  if (!text) return std::optional<Record>();
  CAIRN_TRY_ASSIGN(auto record, parse_record(*text));
  return std::optional(std::move(record));
}

Result<Snapshot> look_at(const Directory& dest, const std::vector<FoundAttempt>& attempts) {
  Snapshot snapshot;
  CAIRN_TRY_ASSIGN(snapshot.mark, dest.read(std::string(kMarkName), kMaxMarkBytes));
  for (const FoundAttempt& attempt : attempts) {
    if (attempt.view.state == AttemptState::kDecided)
      CAIRN_TRY(add_decided(dest, attempt, snapshot));
  }
  if (!snapshot.record) {
    CAIRN_TRY_ASSIGN(snapshot.record, record_in_place(dest));
  }
  for (const FoundAttempt& attempt : attempts) {
    if (attempt.view.state == AttemptState::kAbandoned) continue;
    snapshot.torn = snapshot.torn || tears(attempt, snapshot);
    snapshot.attempts.push_back(attempt.view);
  }
  return snapshot;
}

/// Do mark and record belong together? They do if the mark is still there after the record was
/// read: a commit takes it away before it changes anything else. Decided attempts have both.
Result<bool> belong_together(const Directory& dest, const Snapshot& snapshot) {
  if (!snapshot.record || !snapshot.mark || !snapshot.moved.empty()) return true;
  CAIRN_TRY_ASSIGN(const auto mark, dest.read(std::string(kMarkName), kMaxMarkBytes));
  return mark == snapshot.mark;
}

/// How far everybody's saves have come, as far as that can make a mark or a writer seem missing.
struct CommitState {
  std::uint64_t generation = 0;
  std::vector<std::pair<std::string, AttemptState>> attempts;
  bool operator==(const CommitState&) const = default;
};

Result<CommitState> progress_of(const Directory& dest, const std::vector<FoundAttempt>& attempts) {
  CommitState progress;
  for (const FoundAttempt& attempt : attempts)
    progress.attempts.emplace_back(attempt.view.id, attempt.view.state);
  CAIRN_TRY_ASSIGN(const auto record, record_in_place(dest));
  if (record) progress.generation = record->generation;
  return progress;
}

}  // namespace

Result<Snapshot> take_snapshot(storage::FileSystem& fs, const LocalPath& path) {
  CAIRN_TRY_ASSIGN(const Directory dest, Directory::open(fs, path, false));
  CAIRN_TRY_ASSIGN(auto attempts, find_attempts(dest));
  CAIRN_TRY_ASSIGN(Snapshot snapshot, look_at(dest, attempts));
  // A mark that is not there, or a writer that is dead, may be a save that went on between two
  // looks. It did not if nothing had moved from before to after.
  for (int looks = 0; looks < kMostReopenings; ++looks) {
    CAIRN_TRY_ASSIGN(const bool together, belong_together(dest, snapshot));
    if (together && !snapshot.torn && (snapshot.mark || !snapshot.record)) break;
    CAIRN_TRY_ASSIGN(const CommitState before, progress_of(dest, attempts));
    CAIRN_TRY_ASSIGN(attempts, find_attempts(dest));
    CAIRN_TRY_ASSIGN(snapshot, look_at(dest, attempts));
    CAIRN_TRY_ASSIGN(attempts, find_attempts(dest));
    CAIRN_TRY_ASSIGN(const CommitState after, progress_of(dest, attempts));
    if (before == after) break;
  }
  return snapshot;
}

}  // namespace cairn
