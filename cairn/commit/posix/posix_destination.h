// SPDX-License-Identifier: Apache-2.0
// A directory on a file system as the destination of saves.
#pragma once

#include <memory>

#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/commit/destination.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// `fs` and `clock` must outlive it.
std::unique_ptr<Destination> open_posix_destination(storage::FileSystem& fs, Clock& clock,
                                                    LocalPath path);

}  // namespace cairn
