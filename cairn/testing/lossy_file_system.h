// SPDX-License-Identifier: Apache-2.0
// A file system in memory for crash tests: it counts operations, fails or stops at one of them, and
// says what a killed process or a power cut leaves. What is durable when is written in
// lossy_disk.h.
//
//   LossyFileSystem fs;
//   fs.crash_after(n);                        // for each n
//   work(fs);                                 // fails when it gets there
//   auto left = fs.after_power_cut();         // also: after_power_cut(seed), after_kill()
//   check(*left);
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/async/mutex.h"
#include "cairn/storage/local/file_system.h"
#include "cairn/testing/lossy_disk.h"

namespace cairn::testing {

/// Errors are those of the real one. There are no symbolic links, no direct I/O, no ".."; the
/// working directory is "/", and device numbers are 1. Must outlive its files. Threading: safe.
class LossyFileSystem final : public storage::FileSystem {
 public:
  struct Operation {
    std::string name;  ///< "open", "create", "read", "write", "truncate", "allocate", "info",
                       ///< "sync", "sync-file-system", "lock", "stat", "list", "make-directory",
                       ///< "remove-file", "remove-directory", "rename", "link", "space"
    std::string path;  ///< absolute; of a rename or link "<from> to <to>"
    bool changes;      ///< the state of the disk: only these are worth a crash
  };

  LossyFileSystem() = default;
  explicit LossyFileSystem(LossyDisk disk) : disk_(std::move(disk)) {}

  /// In order, the failed one included. Closing a file is none.
  std::vector<Operation> operations() const;
  /// The operation with this index (from 0) fails with this errno and does nothing, but: a write
  /// leaves half of its bytes, and a sync gives the bytes up, so that a second one
  /// succeeds in vain.
  void fail_at(std::size_t index, int error_number);
  /// The first `count` operations happen. Then the process is dead: every call fails
  /// (lossy/crashed) and does nothing; the write that was cut off leaves half of its bytes.
  void crash_after(std::size_t count);

  /// As LossyDisk has it.
  void make_directories_unmovable();

  /// After the process was killed: its locks are gone, all else is as it was, and nothing more has
  /// become durable.
  std::unique_ptr<LossyFileSystem> after_kill() const;
  /// After a power cut: only what is durable.
  std::unique_ptr<LossyFileSystem> after_power_cut() const;
  /// The same, with some of what is not durable; the same seed gives the same.
  std::unique_ptr<LossyFileSystem> after_power_cut(std::uint64_t seed) const;
  /// Path to content of all files; directories end in '/'. No operation; works after a crash.
  std::map<std::string, std::string> snapshot() const;

  Result<std::unique_ptr<storage::File>> open(const storage::File* at, const std::string& path,
                                              const storage::OpenOptions& options) override;
  Result<storage::FileInfo> stat(const storage::File* at, const std::string& path,
                                 bool follow_links) override;
  Result<std::vector<storage::DirEntry>> list(const storage::File& directory) override;
  Result<void> make_directory(const storage::File* at, const std::string& path) override;
  Result<void> remove_file(const storage::File* at, const std::string& path) override;
  Result<void> remove_directory(const storage::File* at, const std::string& path) override;
  Result<void> rename(const storage::File* from_at, const std::string& from,
                      const storage::File* to_at, const std::string& to) override;
  Result<void> link(const storage::File* from_at, const std::string& from,
                    const storage::File* to_at, const std::string& to) override;
  Result<storage::SpaceInfo> space(const storage::File& file) override;

 private:
  friend class LossyFile;
  /// A name, and its inode if it exists.
  struct Entry {
    LossyDisk::Slot slot;  ///< of "." and "/": without a name
    std::optional<LossyDisk::Id> target;
  };

  /// Counts the operation; its error, if it is one that fails.
  Result<void> begin(const char* name, std::string path, bool changes) CAIRN_REQUIRES(mutex_);
  Result<Entry> find(const storage::File* at, const std::string& path, const char* doing)
      CAIRN_REQUIRES(mutex_);
  Result<LossyDisk::Id> open_target(const Entry& entry, const storage::OpenOptions& options,
                                    const std::string& path) CAIRN_REQUIRES(mutex_);
  Result<void> check_rename(const Entry& from, const Entry& to, const std::string& both)
      CAIRN_REQUIRES(mutex_);
  storage::FileInfo info(LossyDisk::Id id) const CAIRN_REQUIRES(mutex_);

  mutable Mutex mutex_;
  LossyDisk disk_ CAIRN_GUARDED_BY(mutex_);
  std::vector<Operation> operations_ CAIRN_GUARDED_BY(mutex_);
  std::map<std::size_t, int> failures_ CAIRN_GUARDED_BY(mutex_);
  bool dead_ CAIRN_GUARDED_BY(mutex_) = false;
  std::size_t crash_ CAIRN_GUARDED_BY(mutex_) = std::numeric_limits<std::size_t>::max();
  std::map<LossyDisk::Id, const storage::File*> locks_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace cairn::testing
