// SPDX-License-Identifier: Apache-2.0
// The two small files of an attempt: attempt.json (who writes, and what was there when it began)
// and outcome.json (the decision, and the moves that follow from it).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/commit/process_name.h"

namespace cairn {

constexpr std::string_view kAttemptFile = "attempt.json";
constexpr std::string_view kOutcomeFile = "outcome.json";
/// The mark while it waits, so that no glob takes the attempt for a checkpoint.
constexpr std::string_view kStagedMark = "metadata.json.new";
/// Longest of these files that is written and read. Enough for all names of the
/// largest record to go and as many to come.
constexpr std::size_t kMaxAttemptFileBytes = std::size_t{64} << 20;

struct AttemptFile {
  std::string id = {};
  ProcessName writer = {};
  std::string started = {};
  std::string run_id = {};
  int ranks = 1;
  std::uint64_t generation = 0;                 ///< of the record at birth
  std::optional<std::string> mark_sha256 = {};  ///< of metadata.json at birth
  std::vector<std::pair<std::string, std::string>> prefixes =
      {};  ///< and the attempt that had committed each, or ""
};

/// `invalid_argument` (attempt/too-large) for more than parse_attempt_file() would read.
Result<std::string> dump_attempt_file(const AttemptFile& attempt);
/// `corrupt` (attempt/bad-file).
Result<AttemptFile> parse_attempt_file(std::string_view text);

/// A JSON file that is replaced: digests of what it was merged from and of what is staged; nothing:
/// no file.
struct ReplacedFile {
  std::string name;
  std::optional<std::string> from;
  std::optional<std::string> to;
};

struct Outcome {
  bool commit = false;                ///< false: abandoned, and the rest but `failure` is empty
  std::optional<Error> failure = {};  ///< why it was abandoned
  std::vector<std::string> prefixes = {};  ///< whose lists in the index are this attempt's
  std::vector<std::string> out = {};       ///< entries that leave the destination
  std::vector<std::string> in = {};        ///< entries that come from new/
  std::vector<ReplacedFile> files = {};    ///< index and checkpoint_metadata.json
  std::optional<ReplacedFile> mark = {};
};

/// `invalid_argument` (outcome/too-large) for more than parse_outcome() would read.
Result<std::string> dump_outcome(const Outcome& outcome);
/// `corrupt` (outcome/bad-file), also for names that would leave the destination, and for files
/// that no save replaces.
Result<Outcome> parse_outcome(std::string_view text);

}  // namespace cairn
