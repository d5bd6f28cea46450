// SPDX-License-Identifier: Apache-2.0
// Which checkpoints of a run stay. The plan is a pure function; `removal.h` does what it says.
//
//  1. These stay whatever the rules say: what was just saved; the latest good one, and the latest
//     good one that is of the run (RunEntry::is_of_run()), if need be an abandoned one; pinned
//     ones; those in which a save is under way; torn and damaged ones (clean_leftovers() looks
//     after what is left of saves); those that are not of the run, such as copies under another
//     name; those without a mark; links, and the run directory itself.
//  2. A temporary one that is not the latest good one of the run has been replaced, and goes.
//  3. Of the others, one stays if any keep rule wants it. Without a keep rule, all stay. Rules
//     count good ones of the run alone. keep_last_n counts the run's branch; abandoned ones
//     (discovery.h) stay until that branch has saved as many since.
//  4. While more bytes than `max_bytes` are left, or less space than `min_free_bytes` is free, more
//     go: first those that best_k does not want, abandoned ones before others, oldest first; then
//     those that it wants, worst first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/run/discovery.h"

namespace cairn {

enum class MetricMode : std::uint8_t { kMin, kMax };

struct RetentionRules {
  std::optional<std::int64_t> keep_last_n = {};   ///< the newest permanent ones of its branch
  std::optional<std::int64_t> keep_every_n = {};  ///< whose step it divides
  /// The best by a number under `metrics` in their marks; of equals the newer. NaN is no number. If
  /// no checkpoint has the metric, the rule wants all of them: better too many than a wrong name.
  std::optional<std::int64_t> best_k = {};
  std::string metric = {};
  MetricMode mode = MetricMode::kMin;
  std::optional<std::uint64_t> max_bytes = {};       ///< of all checkpoints together
  std::optional<std::uint64_t> min_free_bytes = {};  ///< on the disk
  bool keep_temporary = false;                       ///< skip 2: temporary ones are as others
};

/// `invalid_argument` (retention/bad-rule): a number below 1, best_k without a metric or a metric
/// without best_k.
Result<void> check_rules(const RetentionRules& rules);

/// A checkpoint as retention sees it.
struct RetentionEntry {
  RunEntry run;
  /// Of ours: what its manifests list, and the manifests. Of others: all files in it. 0 where
  /// nobody asked for sizes.
  std::uint64_t bytes = 0;
  bool fixed = false;  ///< a link, or the run directory itself: nothing removes it
  bool saved = false;  ///< by the job that asks, just now
};

struct Verdict {
  RetentionEntry entry;
  bool keep = true;
  /// saved, latest, pinned, busy, torn, damaged, foreign, unmarked, fixed, temporary, keep-last,
  /// keep-every, best, no-rule, unwanted, max-bytes, min-free; not-removed where that failed
  const char* rule = "";
  std::string reason;  ///< the same as a sentence
};

/// Pure. `entries` newest first, as list_run() gives them, with what is wrong with the newest ones
/// in their `problem`; `free_bytes` is what is free on the disk now. One verdict for each, in the
/// same order. What stays, planned again, stays.
std::vector<Verdict> plan_retention(const std::vector<RetentionEntry>& entries,
                                    const RetentionRules& rules, std::uint64_t free_bytes);

}  // namespace cairn
