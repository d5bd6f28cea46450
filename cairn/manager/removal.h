// SPDX-License-Identifier: Apache-2.0
// How a checkpoint of a run goes away: hidden at once, its bytes later, and only what is ours.
//
//  1. Under the locks of the run directory and of the checkpoint: decided saves in it are finished,
//     mark, pin, record and attempts are read again.
//  2. If everything in it is ours, the directory is renamed to <base>/.cairn-trash/<id> and both
//     directories are synced: from here on it is gone. Nobody finds half of it.
//  3. Otherwise a commit takes our entries out and leaves the rest: the mark and the record go
//     first, the files of others stay, and so does the directory.
//  4. empty_trash() deletes what lies in the trash, whenever it likes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/checkpoint/commit/commit_guard.h"
#include "cairn/checkpoint/runtime.h"

namespace cairn::inline manager {

struct RemovalOptions {
  /// Leave it alone if its mark does not say, under the lock, that it is temporary.
  bool only_if_temporary = false;
  /// Files that others put into the checkpoint go with it. Otherwise they stay, and the directory
  /// with them. It must have a record of ours either way.
  bool with_other_files = false;
  CommitGuard guard = {};  ///< of the run; taken before the locks
};

enum class Removal : std::uint8_t {
  kRemoved,       ///< it is in the trash
  kOthersStay,    ///< ours is gone; the directory and what others put into it stay
  kNotTemporary,  ///< only_if_temporary, and it is permanent or has no mark
  kNotThere,
};

/// `path` is a direct child of the run directory `base`. `invalid_argument` (removal/outside),
/// `failed_precondition`: removal/symlink, removal/foreign (no record and no attempt of ours),
/// removal/pinned (with the reason), removal/busy (with the host and process that save into it);
/// the guard's error. An error means that it can still be found, or that it is gone.
Result<Removal> remove_checkpoint(const std::string& base, const std::string& path,
                                  const RemovalOptions& options, Runtime& runtime);

/// Deletes what removals left in the trash of the run directory; takes its lock for a moment only.
/// Returns how many were deleted. Fine if there is none.
Result<std::uint64_t> empty_trash(const std::string& base, Runtime& runtime);

/// What earlier saves and removals left in a run directory.
struct Leftover {
  enum class Kind : std::uint8_t {
    kAttempt,    ///< of a writer that died
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
/// nothing else lies goes too. What cannot be removed now is in the list with its problem.
Result<std::vector<Leftover>> clean_leftovers(const std::string& base, const CommitGuard& guard,
                                              Runtime& runtime);

}  // namespace cairn::inline manager
