// SPDX-License-Identifier: Apache-2.0
// Keys as files below one directory. Reading follows symbolic links, writing and deleting never do,
// the directory itself included (storage/symlink).
//
// A new object is written under a temporary name (".cairn-tmp-*" in the same directory), synced,
// and renamed by finish(); put() does the same: a name never shows a part of an object, even after
// a power cut. What a killed process left there is removed by the next that writes into the
// directory (temporary_files.h). sync() then makes the names durable: fsync of each directory that
// changed, children first.
//
// In a private directory nobody looks, so files are written in place, and the bytes need be durable
// only after sync(): by one syncfs on a descriptor that was opened before the first write, where
// that is known to report errors; else by fsync of each file as it is finished, and of the
// directories in sync().
//
// Keys are listed without temporary names. A link to a directory is listed through, but no second
// one below it.
#pragma once

#include <memory>
#include <string>

#include "cairn/storage/local/file_system.h"
#include "cairn/storage/store.h"

namespace cairn::storage {

struct LocalStoreOptions {
  bool create_root =
      false;  ///< make the directory (and its parents), durably, when it is not there
  bool private_directory = false;  ///< nobody looks into the directory yet (an attempt)
  bool batch_sync = true;  ///< private directory: syncfs where it can be trusted; off: never
};

/// ObjectInfo::generation of a file, or of a directory: of what was added to it and removed.
std::string generation_of(const FileInfo& info);

/// `not_found` (storage/not-found), or `failed_precondition` (fs/not-a-directory) if `path` is a
/// file. `fs` must outlive it. Reasons of the file system that store.h does not list are passed on
/// as they are.
Result<std::unique_ptr<Store>> open_local_store(FileSystem& fs, const std::string& path,
                                                const LocalStoreOptions& options = {});

}  // namespace cairn::storage
