// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/commit/snapshot.h"

#include <algorithm>
#include <utility>

#include "cairn/base/sha256.h"
#include "cairn/checkpoint/commit/attempts.h"
#include "cairn/checkpoint/names.h"

namespace cairn::inline checkpoint {

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
  for (const std::string& name : attempt.outcome->in) {
    CAIRN_TRY_ASSIGN(const bool waiting, dest.exists(staged + name));
    if (waiting) snapshot.moved.emplace_back(name, staged + name);
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
                                              std::string(kMarkName), kMaxAttemptFileBytes));
  return {};
}

bool tears(const FoundAttempt& attempt, const Snapshot& snapshot) {
  if (attempt.view.state != AttemptState::kDead) return false;
  if (!snapshot.mark) return !snapshot.record;
  return attempt.file.mark_sha256 != sha256_hex(as_bytes(*snapshot.mark));
}

}  // namespace

std::string Snapshot::locate(const std::string& name) const {
  for (const auto& [entry, place] : moved) {
    if (name == entry) return place;
    if (name.starts_with(entry + "/")) return place + name.substr(entry.size());
  }
  return name;
}

std::string Snapshot::version() const {
  std::string text = std::to_string(record ? record->generation : 0);
  for (const AttemptView& attempt : attempts) {
    if (attempt.state == AttemptState::kDecided) text += " " + attempt.id;
  }
  for (const auto& [entry, place] : moved) text += " " + place;
  return text;
}

Result<Snapshot> take_snapshot(storage::FileSystem& fs, const std::string& path) {
  CAIRN_TRY_ASSIGN(const Directory dest, Directory::open(fs, path, false));
  CAIRN_TRY_ASSIGN(const auto attempts, find_attempts(dest));
  Snapshot snapshot;
  CAIRN_TRY_ASSIGN(snapshot.mark, dest.read(std::string(kMarkName), kMaxAttemptFileBytes));
  for (const FoundAttempt& attempt : attempts) {
    if (attempt.view.state == AttemptState::kDecided)
      CAIRN_TRY(add_decided(dest, attempt, snapshot));
  }
  if (!snapshot.record) {
    CAIRN_TRY_ASSIGN(const auto text, dest.read(std::string(kRecordName), kMaxRecordBytes));
    if (text) {
      CAIRN_TRY_ASSIGN(snapshot.record, parse_record(*text));
    }
  }
  for (const FoundAttempt& attempt : attempts) {
    if (attempt.view.state == AttemptState::kAbandoned) continue;
    snapshot.torn = snapshot.torn || tears(attempt, snapshot);
    snapshot.attempts.push_back(attempt.view);
  }
  return snapshot;
}

}  // namespace cairn::inline checkpoint
