// SPDX-License-Identifier: Apache-2.0
// A save on its way into a destination, until it is visible: whole or not at all. destination.h
// begins one; how it becomes visible is each storage's own business (posix/file_attempt.h has the
// protocol on a file system).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/base/result.h"
#include "cairn/commit/commit_guard.h"
#include "cairn/manifest/record.h"
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
  /// Its list in tensorstore_index.json; nothing: it has no entry there.
  std::optional<Json> arrays = {};
};

struct CommitRequest {
  std::vector<CommitPrefix> prefixes = {};
  std::optional<std::int64_t> step = {};
  std::optional<std::string> checkpoint_metadata = {};  ///< text of checkpoint_metadata.json
  std::optional<std::string> mark = {};  ///< text of metadata.json; nothing: left as it is
};

/// Destroyed undecided: abandoned, and its data removed. With several ranks, once one of them has
/// abandoned it, its outcome stays for the others to read; a save after they have ended removes it.
/// Threading: compatible; data(), enter() and count() are safe.
class Attempt {
 public:
  virtual ~Attempt() = default;

  virtual const std::string& id() const = 0;
  /// Where the data goes, laid out as it will stand in the destination. sync() it before commit().
  virtual storage::Store& data() = 0;
  /// With one rank: what the save does now and how far it is, for people who look
  /// (Destination::look()). Best effort. With several, each says it through its AttemptRank.
  virtual void enter(std::string_view phase) = 0;
  virtual void count(std::uint64_t done, std::uint64_t total) = 0;
  /// Makes the data visible, in the place of what the prefixes held before. `already_exists`
  /// (commit/prefix-changed) if somebody else committed one of the prefixes since the attempt
  /// began, `already_exists` (commit/foreign-entry), `invalid_argument` (commit/file-too-large,
  /// prefix/nested); the error that another rank abandoned it with. An error before the decision
  /// leaves everything as it was. After the decision the save has happened: the next writer
  /// finishes what is left to do.
  virtual Result<void> commit(const CommitRequest& request) = 0;
};

}  // namespace cairn
