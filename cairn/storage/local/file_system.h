// SPDX-License-Identifier: Apache-2.0
// The POSIX calls that Cairn makes, as an interface: the seam that crash tests replace. `posix.cc`
// is the real one; `testing/lossy_file_system.h` remembers what was made durable and loses the
// rest.
//
// All errors carry the path as where(), and one reason for each errno that matters: fs/not-found,
// fs/exists, fs/not-empty, fs/file-too-large, fs/permission, fs/read-only, fs/symlink (ELOOP),
// fs/not-a-directory, fs/is-a-directory, fs/cross-device, fs/busy, fs/stale, fs/timeout, fs/io,
// fs/too-many-files, fs/name-too-long, fs/no-memory, fs/unsupported, fs/invalid; fs/outside for a
// path that is absolute or has ".." in it where an open directory was given; the rest is
// fs/unexpected. A full disk and a used-up quota are storage/no-space, as of any store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/base/bytes.h"
#include "cairn/base/result.h"

namespace cairn::storage {

enum class FileKind : std::uint8_t { kFile, kDirectory, kSymlink, kOther };

struct FileInfo {
  FileKind kind = FileKind::kFile;
  std::uint64_t size = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;
  std::uint32_t links = 1;
};

struct DirEntry {
  std::string name;
  FileKind kind = FileKind::kFile;
};

struct OpenOptions {
  enum class Access : std::uint8_t { kRead, kReadWrite, kDirectory };
  Access access = Access::kRead;
  bool create = false;        ///< make it if it is not there, mode 0666 less the umask
  bool exclusive = false;     ///< with create: fail if it is there
  bool direct = false;        ///< O_DIRECT; fs/unsupported where the file system refuses
  bool follow_links = false;  ///< otherwise a symbolic link anywhere below `at` is fs/symlink
};
inline constexpr OpenOptions kNewFile{
    .access = OpenOptions::Access::kReadWrite, .create = true, .exclusive = true};

/// An open file or directory; the destructor closes it. Threading: safe.
class File {
 public:
  virtual ~File() = default;
  /// As far as the file goes; less than asked only at its end.
  virtual Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan out) = 0;
  /// All of it.
  virtual Result<void> write_at(std::uint64_t offset, ByteSpan bytes) = 0;
  virtual Result<void> truncate(std::uint64_t size) = 0;
  /// Extends to `size` and reserves the blocks; no-op where the file system cannot.
  virtual Result<void> allocate(std::uint64_t size) = 0;
  virtual Result<FileInfo> info() = 0;
  /// fsync: for a file its bytes, for a directory its names.
  virtual Result<void> sync() = 0;
  /// syncfs: everything on this file system written before the call, with errors since this File
  /// was opened. fs/unsupported where !can_sync_file_system().
  virtual Result<void> sync_file_system() = 0;
  /// syncfs is known to wait for the bytes and to report their loss here (Linux 5.8 on, some file
  /// systems).
  virtual bool can_sync_file_system() const = 0;
  /// Exclusive lock of this open file (OFD), held until close. False: somebody else has it.
  /// fs/unsupported where the mount has no locks. REQUIRES: opened with kReadWrite.
  virtual Result<bool> try_lock() = 0;
  /// Does another open file hold the lock? Takes nothing, so that looking disturbs nobody, and
  /// needs no right to write. fs/unsupported as try_lock().
  virtual Result<bool> is_locked_elsewhere() = 0;
};

struct SpaceInfo {
  std::uint64_t total = 0;
  std::uint64_t available = 0;  ///< to this user
  std::string type;             ///< "ext4", "tmpfs", "nfs", "overlay", or its magic number in hex
  bool in_memory = false;       ///< a power cut or a reboot takes everything, synced or not
};

/// Paths are relative to `at`, an open directory of this FileSystem, or to the working directory
/// when it is null. Below an open directory no symbolic link is met on the way unless
/// `follow_links` says so; a path without one is the user's own: only its last component must be no
/// link. Threading: safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<File>> open(const File* at, const std::string& path,
                                             const OpenOptions& options) = 0;
  /// Of the link itself unless `follow_links`.
  virtual Result<FileInfo> stat(const File* at, const std::string& path, bool follow_links) = 0;
  /// Without "." and "..", sorted by name.
  virtual Result<std::vector<DirEntry>> list(const File& directory) = 0;
  /// One level; fs/exists if anything is there.
  virtual Result<void> make_directory(const File* at, const std::string& path) = 0;
  /// Of a symbolic link, the link itself.
  virtual Result<void> remove_file(const File* at, const std::string& path) = 0;
  virtual Result<void> remove_directory(const File* at, const std::string& path) = 0;
  /// Replaces a file or an empty directory at `to`.
  virtual Result<void> rename(const File* from_at, const std::string& from, const File* to_at,
                              const std::string& to) = 0;
  /// Hard link; fs/exists if `to` is there, fs/unsupported where there are none.
  virtual Result<void> link(const File* from_at, const std::string& from, const File* to_at,
                            const std::string& to) = 0;
  virtual Result<SpaceInfo> space(const File& file) = 0;
};

}  // namespace cairn::storage
