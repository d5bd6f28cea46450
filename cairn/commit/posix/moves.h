// SPDX-License-Identifier: Apache-2.0
// What follows from a decision: the moves, in an order in which a crash anywhere leaves the rest to
// be done again. commit.h has the whole protocol; these are its steps 5 and 6.
#pragma once

#include <string>

#include "cairn/commit/posix/attempt_files.h"
#include "cairn/commit/posix/directory.h"

namespace cairn {

/// Did a rename within one directory fail because that is a directory of an overlay's lower layer?
bool is_unmovable(const Result<void>& renamed);

/// Does what is left to do for a decided attempt (`attempt` is its directory's name). REQUIRES: the
/// lock is held.
Result<void> finish_attempt(const Directory& dest, const std::string& attempt,
                            const Outcome& outcome);

/// Hides what lies at `name` in the trash, as `id`, durably. On a disk too full for that directory
/// it becomes the trash. `failed_precondition` (fs/cross-device) for a directory of an overlay's
/// lower layer, which no rename moves. REQUIRES: the lock is held.
Result<void> bury(const Directory& dest, const std::string& name, const std::string& id);

/// As bury(), for what no reader looks at: it is deleted where it is if no rename moves it.
Result<void> bury_or_remove(const Directory& dest, const std::string& name, const std::string& id);

/// Hides an attempt in the trash, makes that durable, then deletes it. REQUIRES: the lock is held.
Result<void> discard_attempt(const Directory& dest, const std::string& attempt);

}  // namespace cairn
