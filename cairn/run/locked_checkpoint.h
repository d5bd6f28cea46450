// SPDX-License-Identifier: Apache-2.0
// A checkpoint of a run, held by the locks under which it may be taken away.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cairn/commit/commit_guard.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// How long one waits for the lock of a run or of a checkpoint in it.
inline constexpr std::chrono::seconds kLockTimeout{60};

/// The directory of a run.
Result<Directory> open_run(const std::string& base, Runtime& runtime);

/// The name in the run directory of what `path` leads to. `invalid_argument` (removal/outside) if
/// it is no direct child.
Result<std::string> name_in_run(const Directory& base, const std::string& path);

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

}  // namespace cairn
