// SPDX-License-Identifier: Apache-2.0
// Keys as files below one directory. Reading follows symbolic links, writing and deleting never do.
//
// A new object is written under a temporary name (".cairn-tmp-*" in the same directory) and renamed by
// finish(); put() does the same. sync() makes all of it durable: one syncfs on a descriptor that was
// opened before the first write, where the kernel reports errors that way; else fsync of each file, then
// of each directory, children first.
#pragma once

#include <memory>
#include <string>

#include "cairn/storage/local/file_system.h"
#include "cairn/storage/store.h"

namespace cairn::storage {

struct LocalStoreOptions {
  bool create_root = false;     ///< make the directory (and its parents) when it is not there
  /// The caller owns the whole directory and nobody looks at it yet (an attempt): files are written in
  /// place, without the temporary name and rename.
  bool private_directory = false;
  bool batch_sync = true;       ///< syncfs where it can be trusted; off: fsync of each file
};

/// `not_found`, or `failed_precondition` (fs/not-a-directory) if `path` is a file. `fs` must outlive it.
Result<std::unique_ptr<Store>> open_local_store(FileSystem& fs, const std::string& path,
                                                const LocalStoreOptions& options = {});

}  // namespace cairn::storage
