// SPDX-License-Identifier: Apache-2.0
// The owner of a run directory on a file system. It holds a lock on `.cairn-owner.json` for as long
// as it lives; owners change, and commits look at the file, under `.cairn-run-lock`.
#pragma once

#include <memory>
#include <optional>

#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/commit/run_owner.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// RunDirectory::take().
Result<std::shared_ptr<RunOwner>> take_file_owner(storage::FileSystem& fs, Clock& clock,
                                                  const LocalPath& path,
                                                  const OwnershipOptions& options);
/// RunDirectory::find_owner().
Result<std::optional<SeenOwner>> find_file_owner(storage::FileSystem& fs, const LocalPath& path);

}  // namespace cairn
