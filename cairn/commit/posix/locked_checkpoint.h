// SPDX-License-Identifier: Apache-2.0
// A checkpoint of a run, held by the locks under which it may be taken away.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cairn/base/clock.h"
#include "cairn/commit/commit_guard.h"
#include "cairn/commit/posix/directory.h"

namespace cairn {

/// The guard of the run, the lock of its directory, and of one child of it: taken in this order,
/// let go in the other.
struct LockedCheckpoint {
  std::shared_ptr<void> allowed;
  DirectoryLock base_lock;
  Directory dest;
  DirectoryLock dest_lock;
};

/// Nothing if there is no such child. `failed_precondition`: removal/symlink, removal/foreign for
/// what has no record of ours and holds no attempt, before anything is written there; not if it is
/// `known` to be one of the run.
Result<std::optional<LockedCheckpoint>> lock_checkpoint(const Directory& base,
                                                        const std::string& name,
                                                        const CommitGuard& guard, Clock& clock,
                                                        bool known = false);

/// Does nothing but its lock lie in it? Then a save had hardly begun.
Result<bool> is_hardly_begun(const Directory& dest);

}  // namespace cairn
