// SPDX-License-Identifier: Apache-2.0
// What earlier jobs left in a run directory: unfinished saves, trash, and temporary checkpoints
// that have been replaced.
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
    kTemporary,  ///< a temporary checkpoint that a newer good one has replaced
  };
  Kind kind = Kind::kAttempt;
  std::string path;
  std::string problem = {};  ///< why it could not be removed; empty: it was, or nobody tried
};

/// Those of the run directory itself and of its direct children.
Result<std::vector<Leftover>> find_leftovers(const std::string& base, Runtime& runtime);

/// Removes them. A torn checkpoint loses the attempt that tore it, and its mark becomes
/// `metadata.json.torn`, so that nobody takes what is left for a whole one; a directory in which
/// nothing else lies goes too. A save that was decided but not finished is finished. What cannot be
/// removed now is in the list with its problem.
Result<std::vector<Leftover>> clean_leftovers(const std::string& base, const CommitGuard& guard,
                                              Runtime& runtime);

}  // namespace cairn
