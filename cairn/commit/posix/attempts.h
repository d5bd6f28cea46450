// SPDX-License-Identifier: Apache-2.0
// The attempts that lie in a destination, and whether their writers live.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cairn/commit/attempt_view.h"
#include "cairn/commit/posix/attempt_files.h"
#include "cairn/commit/posix/directory.h"

namespace cairn {

struct FoundAttempt {
  std::string directory;  ///< its name in the destination
  AttemptFile file;
  std::optional<Outcome> outcome;  ///< a commit, when decided
  AttemptView view;
};

/// In the order of their names. One that cannot be read (it is being born or buried) is left out. A
/// writer is dead when nobody holds the lock on its attempt.json.
Result<std::vector<FoundAttempt>> find_attempts(const Directory& dest);

/// Is the process of any rank in it? What cannot be looked at keeps nobody.
bool has_live_ranks(const Directory& dest, const std::string& attempt);

/// REQUIRES: the lock is held. Finishes decided attempts, and touches no others.
Result<void> finish_all_decided(const Directory& dest);

/// REQUIRES: the lock is held. Finishes decided attempts, removes those of dead writers, abandoned
/// ones in which no rank lives, and what is in the trash.
Result<RecoveryReport> recover_locked(const Directory& dest);

}  // namespace cairn
