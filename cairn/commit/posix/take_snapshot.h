// SPDX-License-Identifier: Apache-2.0
// What a reader sees of a directory, without a lock.
#pragma once

#include "cairn/base/uri.h"
#include "cairn/commit/snapshot.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// `not_found` if `dest` is no directory; `corrupt` for a damaged record.
Result<Snapshot> take_snapshot(storage::FileSystem& fs, const LocalPath& dest);

}  // namespace cairn
