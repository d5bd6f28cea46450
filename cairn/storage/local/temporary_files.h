// SPDX-License-Identifier: Apache-2.0
// The files under which a local store writes objects before they get their names.
//
// A writer holds the lock of its file until the file has its name or is gone. So a file whose lock
// can be taken has lost its writer, with one exception: a writer that has made its file and not yet
// locked it. It looks after locking whether the file still has its name, and makes another if not.
// Names carry the host, and a host removes its own alone: some mounts do not share locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "cairn/async/mutex.h"
#include "cairn/storage/local/file_system.h"

namespace cairn::storage {

/// Begins every temporary name; such names are never listed.
inline constexpr std::string_view kTemporaryPrefix = ".cairn-tmp-";

/// Threading: safe. `fs` and `root` must outlive it.
class TemporaryFiles {
 public:
  struct Made {
    std::unique_ptr<File> file;
    std::string name;  ///< below the root
  };

  TemporaryFiles(FileSystem& fs, const File& root);

  /// A new file in `directory` below the root, "" for the root itself. Before the first one in a
  /// directory, what dead writers of this host left there is removed.
  Result<Made> make(const std::string& directory);

 private:
  Result<void> remove_abandoned(const std::string& directory);
  Result<void> remove_if_abandoned(const std::string& name);
  Result<bool> has_name(File& file, const std::string& name);

  FileSystem& fs_;
  const File& root_;
  const std::string prefix_;  ///< of this host
  std::atomic<std::uint64_t> next_ = 0;
  Mutex mutex_;
  std::set<std::string> visited_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace cairn::storage
