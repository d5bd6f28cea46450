// SPDX-License-Identifier: Apache-2.0
// Takes everything of ours out of a directory that others use as well, by one decision, as a save
// puts it in: an attempt is made out of sight with its outcome in it, and the rename that shows it
// is the decision. What follows is what follows from any (moves.h), and whoever opens the directory
// for writing next finishes it.
#pragma once

#include <string>
#include <vector>

#include "cairn/commit/posix/directory.h"
#include "cairn/manifest/record.h"

namespace cairn {

/// `record`: what is there. The entries of all its prefixes go, and `files`; a record without
/// prefixes stays. From the decision on a mark among the files counts for nothing.
/// `failed_precondition` (commit/symlink) where a link stands in the place of an entry. REQUIRES:
/// the lock is held, and no attempt lies in the directory that is decided or whose writer lives.
Result<void> take_out(const Directory& dest, const Record& record,
                      const std::vector<std::string>& files, Clock& clock);

}  // namespace cairn
