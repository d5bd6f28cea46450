// SPDX-License-Identifier: Apache-2.0
// A run on a file system. A checkpoint goes away in one rename, and its bytes later:
//
//  1. Under the guard of the run, the lock of its directory and that of the checkpoint, decided
//     saves are finished; then it is asked what is to go.
//  2. All of it: the directory is renamed to <run>/.cairn-trash/<id> and both directories are
//     synced: from here on it is gone. Nobody finds half of it.
//  3. Ours alone: one decision takes mark, record and our entries out (take_out.h).
//  4. empty_trash() deletes what lies in the trash, whenever it likes.
#pragma once

#include <memory>

#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/commit/run_directory.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// File system and clock must outlive it, and its owner.
std::unique_ptr<RunDirectory> open_posix_run(storage::FileSystem& fs, Clock& clock, LocalPath path);

}  // namespace cairn
