// SPDX-License-Identifier: Apache-2.0
// The attempts in a directory and what their ranks do, read without a lock.
#pragma once

#include <vector>

#include "cairn/base/uri.h"
#include "cairn/commit/seen_attempts.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// What is not there, or half written, counts as not come yet. `not_found` if `dest` is no
/// directory.
Result<std::vector<SeenAttempt>> look_at_attempts(storage::FileSystem& fs, const LocalPath& dest);

}  // namespace cairn
