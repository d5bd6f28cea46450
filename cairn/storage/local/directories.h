// SPDX-License-Identifier: Apache-2.0
// The directories of a local store: made when a key needs them, synced when their names must last.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cairn/async/mutex.h"
#include "cairn/storage/local/file_system.h"

namespace cairn::storage {

/// "a/b" of "a/b/c", "" of "a".
std::string parent_of(std::string_view path);

/// `path` and what is missing above it; each that was made is durable. Nothing to do where it
/// exists.
Result<void> make_directories(FileSystem& fs, const std::string& path);

/// Directories below `root`, by relative path, "" for itself. Remembers which are there, so that
/// many keys in one directory cost one attempt to make it. Threading: safe. `fs` and `root` must
/// outlive it.
class Directories {
 public:
  Directories(FileSystem& fs, const File& root) : fs_(fs), root_(root) {}

  /// Makes `directory` and those above it unless it is known to be there.
  Result<void> ensure(const std::string& directory);
  /// Somebody removed some: the next ensure() looks again.
  void forget();
  void names_changed_in(const std::string& directory);
  /// fsync of all whose names changed since the last one, children first. After an error they still
  /// wait.
  Result<void> sync();

 private:
  bool knows(const std::string& directory);
  Result<void> sync_each(const std::set<std::string>& directories);

  FileSystem& fs_;
  const File& root_;
  Mutex mutex_;
  std::set<std::string> known_ CAIRN_GUARDED_BY(mutex_);
  std::set<std::string> changed_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace cairn::storage
