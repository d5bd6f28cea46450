// SPDX-License-Identifier: Apache-2.0
// Leftovers of earlier jobs in a run directory: unfinished saves, trash, replaced temporary
// checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/commit/commit_guard.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// What earlier saves and removals left in a run directory.
struct Leftover {
  enum class Kind : std::uint8_t {
    kAttempt,    ///< of a writer that died or gave up
    kTrash,      ///< what is about to be deleted
    kTemporary,  ///< a temporary checkpoint that a newer good one replaced
  };
  Kind kind = Kind::kAttempt;
  std::string path;
  std::string problem = {};  ///< why it could not be removed; empty: it was, or nobody tried
};

/// Those of the run directory itself and of its direct children.
Result<std::vector<Leftover>> find_leftovers(const std::string& base, Runtime& runtime);

/// Removes them, and finishes saves that were decided but not finished. Of a torn checkpoint, the
/// attempt is removed and the mark renamed to `metadata.json.torn`, so that no reader takes the
/// rest for a whole checkpoint; a directory that is then empty goes too. What cannot be removed is
/// listed with its problem.
Result<std::vector<Leftover>> clean_leftovers(const std::string& base, const CommitGuard& guard,
                                              Runtime& runtime);

}  // namespace cairn
