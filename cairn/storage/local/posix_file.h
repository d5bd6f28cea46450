// SPDX-License-Identifier: Apache-2.0
// An open descriptor as a File.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include "cairn/storage/local/file_system.h"
#include "cairn/storage/local/unique_fd.h"

namespace cairn::storage {

/// Calls again after a signal.
template <typename Call>
auto retried(Call call) {
  auto answer = call();
  while (answer < 0 && errno == EINTR) answer = call();
  return answer;
}

FileKind kind_of(mode_t mode);
FileInfo to_info(const struct stat& raw);

class PosixFile final : public File {
 public:
  PosixFile(UniqueFd fd, std::string path, bool direct)
      : fd_(std::move(fd)), path_(std::move(path)), direct_(direct) {}

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  /// The error in errno.
  Error fail(std::string_view doing) const;

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan out) override;
  Result<void> write_at(std::uint64_t offset, ByteSpan bytes) override;
  Result<void> truncate(std::uint64_t size) override;
  Result<void> allocate(std::uint64_t size) override;
  Result<FileInfo> info() override;
  Result<void> sync() override;
  Result<void> sync_file_system() override;
  bool can_sync_file_system() const override;
  Result<bool> try_lock() override;
  Result<bool> is_locked_elsewhere() override;

 private:
  Result<void> check_range(std::uint64_t offset, std::uint64_t size, std::string_view doing) const;

  const UniqueFd fd_;
  const std::string path_;
  const bool direct_;
};

}  // namespace cairn::storage
