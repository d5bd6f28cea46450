// SPDX-License-Identifier: Apache-2.0
// The building blocks of a commit on a file system: whole files, synced directories, removal of
// trees, and the lock.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/manifest/names.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// An open directory and its file system. Paths are relative to it; symbolic links on the way are
/// refused. Threading: compatible.
class Directory {
 public:
  /// Makes it and its missing parents if `create`, each synced into its parent. `not_found`, or
  /// `failed_precondition` (fs/not-a-directory, fs/symlink).
  static Result<Directory> open(storage::FileSystem& fs, const LocalPath& path, bool create);

  /// A directory in it; never through a link.
  Result<Directory> open_below(const std::string& name) const;

  storage::FileSystem& fs() const { return *fs_; }
  const LocalPath& local() const { return path_; }
  const std::string& path() const { return path_; }
  const storage::File* handle() const { return handle_.get(); }
  /// The path of something below it, for messages and stores.
  std::string path_of(const std::string& name) const { return path_.below(name); }

  Result<bool> exists(const std::string& name) const;
  /// Of a link itself. `not_found`.
  Result<storage::FileInfo> stat(const std::string& name) const;
  Result<std::vector<storage::DirEntry>> list(const std::string& name = ".") const;
  /// Nothing if it is not there. `corrupt` (checkpoint/file-too-large) above `limit`.
  Result<std::optional<std::string>> read(const std::string& name, std::uint64_t limit) const;
  /// A new file with this content, synced; its name is not. What was there under this name goes,
  /// and keeps its content if it has other names.
  Result<void> write_synced(const std::string& name, std::string_view content) const;
  /// The file `name` has this content, or what it had before: written aside, renamed, all synced.
  Result<void> replace(const std::string& name, const std::string& aside,
                       std::string_view content) const;
  /// Each missing directory of the path `name`.
  Result<void> make(const std::string& name) const;
  Result<void> rename(const std::string& from, const std::string& to) const;
  /// A second name for a file, which must not be taken. Where there are no hard links, a rename
  /// after a look. `already_exists` (fs/exists).
  Result<void> link_exclusive(const std::string& from, const std::string& to) const;
  /// Names in the directory `name` become durable.
  Result<void> sync(const std::string& name = ".") const;
  /// Everything below `name` and itself; fine if it is not there.
  Result<void> remove_tree(const std::string& name) const;

  /// A file open for writing, made if `create`.
  Result<std::unique_ptr<storage::File>> open_file(const std::string& name, bool create) const;

 private:
  Directory(storage::FileSystem& fs, LocalPath path, std::shared_ptr<storage::File> handle)
      : fs_(&fs), path_(std::move(path)), handle_(std::move(handle)) {}

  storage::FileSystem* fs_;
  LocalPath path_;
  std::shared_ptr<storage::File> handle_;
};

struct MadePath {
  std::vector<std::string> changed;  ///< must be synced, in order, for it to be durable
  bool is_new = false;               ///< this call made the last directory
};
/// `path` and what is missing above it, not yet durable.
Result<MadePath> make_path(storage::FileSystem& fs, const LocalPath& path);
Result<void> sync_path(storage::FileSystem& fs, const std::vector<std::string>& directories);

/// The parent of a relative path, "." for a plain name.
std::string parent_name(const std::string& name);

/// How long the locks of a run and of the checkpoints in it are waited for.
inline constexpr std::chrono::seconds kLockTimeout{60};

/// Held until destroyed. The lock is on the open file `name`, which is never unlinked unless its
/// directory goes; its text names the last holder, unless the file has a second name (a hard link).
class DirectoryLock {
 public:
  /// `deadline_exceeded` (commit/lock-timeout) with the holder, `failed_precondition`
  /// (commit/locks-unsupported), `not_found` (commit/directory-gone) if the directory was moved
  /// away meanwhile: whoever holds the lock of one that is found by its path owns what is found
  /// there.
  static Result<DirectoryLock> acquire(const Directory& directory, Clock& clock,
                                       std::chrono::nanoseconds timeout,
                                       std::string_view name = kLockName);

 private:
  explicit DirectoryLock(std::unique_ptr<storage::File> file) : file_(std::move(file)) {}
  std::unique_ptr<storage::File> file_;
};

/// Removes a directory in which nothing lies, or nothing but its lock (kLockName), if nobody holds
/// that. Whoever is about to take it hears that the directory is gone, or keeps the directory.
Result<void> remove_unused(storage::FileSystem& fs, Clock& clock, const LocalPath& path);

}  // namespace cairn
