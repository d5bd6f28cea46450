// SPDX-License-Identifier: Apache-2.0
// Retention of a run directory: what lies there, planned, and removed.
#pragma once

#include <string>
#include <vector>

#include "cairn/commit/commit_guard.h"
#include "cairn/run/retention.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// The run as plan_retention() wants it: files are looked for down to the latest good one. Sizes
/// are found if `sizes`; each checkpoint's metadata are read for it.
Result<std::vector<RetentionEntry>> survey_run(const std::string& base, bool sizes,
                                               Runtime& runtime);

/// Surveys, plans, and removes unless `dry_run`; the bytes are left to empty_trash(), which is
/// called before where a rule asks for free space. One that cannot be removed now stays, with the
/// problem as its reason.
struct RetentionOptions {
  RetentionRules rules = {};
  bool dry_run = false;
  bool sizes = false;      ///< find sizes even where no rule needs them
  std::string saved = {};  ///< path of what the caller has just saved, if anything: it stays
  CommitGuard guard = {};
};
Result<std::vector<Verdict>> apply_retention(const std::string& base,
                                             const RetentionOptions& options, Runtime& runtime);

}  // namespace cairn
