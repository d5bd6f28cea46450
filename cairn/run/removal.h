// SPDX-License-Identifier: Apache-2.0
// How a checkpoint of a run goes away: at once and whole for everybody, and only what is ours. How
// a storage does that is its own business (posix/posix_run_directory.h on a file system). What is
// looked at under its locks: mark, pin, record, attempts, and which files are whose.
//
// If everything in it is ours, or it is temporary, all of it goes. Otherwise mark, record and our
// entries go by one decision; the files of others stay, and so does the directory. Where others'
// arrays stand in the same index, nothing is touched.
#pragma once

#include <cstdint>
#include <string>

#include "cairn/commit/commit_guard.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

struct RemovalOptions {
  /// Leave it alone if its mark does not say, under the lock, that it is temporary.
  bool only_if_temporary = false;
  /// Remove other people's files in it too, arrays included; always so for temporary checkpoints.
  /// Otherwise they stay, and so does the directory. The checkpoint must have a record of ours
  /// either way, unless it is `known` to be of the run.
  bool with_other_files = false;
  bool known = false;
  CommitGuard guard = {};  ///< of the run; taken before the locks
};

enum class Removal : std::uint8_t {
  kRemoved,       ///< it is in the trash
  kOthersStay,    ///< our files are deleted; the directory and other people's files stay
  kNotTemporary,  ///< only_if_temporary, and it is permanent or has no mark
  kNotThere,
};

/// `path` is a direct child of the run directory `base`. `invalid_argument` (removal/outside),
/// `failed_precondition`: removal/symlink, removal/foreign (nothing of ours, or others' arrays
/// too), removal/pinned (with the reason), removal/busy (with the host and process that save into
/// it); the guard's error. An error means that it can still be found, or that it is gone.
Result<Removal> remove_checkpoint(const std::string& base, const std::string& path,
                                  const RemovalOptions& options, Runtime& runtime);

/// Deletes what removals left in the trash of the run directory; takes its lock for a moment only.
/// Returns how many were deleted. Fine if there is none.
Result<std::uint64_t> empty_trash(const std::string& base, Runtime& runtime);

}  // namespace cairn
