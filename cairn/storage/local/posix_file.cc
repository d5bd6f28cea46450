// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/posix_file.h"

#include <cstdio>
#include <limits>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cairn/base/checked.h"
#include "cairn/base/human.h"
#include "cairn/storage/local/errno.h"
#include "cairn/storage/local/file_system_type.h"

namespace cairn::storage {
namespace {

// The smallest unit of direct I/O.
constexpr std::size_t kSector = 512;

bool kernel_reports_batch_errors() {
  static const bool answer = [] {
    struct utsname name{};
    int major = 0;
    int minor = 0;
    if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2)
      return false;
    return major > 5 || (major == 5 && minor >= 8);
  }();
  return answer;
}

struct flock whole_file_lock() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kFile;
  if (S_ISDIR(mode)) return FileKind::kDirectory;
  return S_ISLNK(mode) ? FileKind::kSymlink : FileKind::kOther;
}

FileInfo to_info(const struct stat& raw) {
  return {.kind = kind_of(raw.st_mode),
          .size = static_cast<std::uint64_t>(raw.st_size),
          .device = static_cast<std::uint64_t>(raw.st_dev),
          .inode = static_cast<std::uint64_t>(raw.st_ino),
          .modified_ns = std::int64_t{raw.st_mtim.tv_sec} * 1'000'000'000 + raw.st_mtim.tv_nsec,
          .links = static_cast<std::uint32_t>(raw.st_nlink)};
}

Error PosixFile::fail(std::string_view doing) const { return errno_error(errno, doing, path_); }

Result<std::size_t> PosixFile::read_at(std::uint64_t offset, MutableByteSpan out) {
  CAIRN_TRY(check_range(offset, out.size(), "read"));
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = retried([&] {
      return ::pread(fd(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    });
    if (got < 0) return fail(fmt::format("read {}", format_bytes(out.size())));
    done += static_cast<std::size_t>(got);
    // A direct read that ends inside a sector has met the end, and may not go on from there.
    if (got == 0 || (direct_ && done % kSector != 0)) break;
  }
  return done;
}

Result<void> PosixFile::write_at(std::uint64_t offset, ByteSpan bytes) {
  CAIRN_TRY(check_range(offset, bytes.size(), "write"));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = retried([&] {
      return ::pwrite(fd(), bytes.data() + done, bytes.size() - done,
                      static_cast<off_t>(offset + done));
    });
    if (put == 0) errno = EIO;
    if (put <= 0) return fail(fmt::format("write {}", format_bytes(bytes.size())));
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Result<void> PosixFile::truncate(std::uint64_t size) {
  CAIRN_TRY(check_range(size, 0, "truncate"));
  if (retried([&] { return ::ftruncate(fd(), static_cast<off_t>(size)); }) != 0) {
    return fail(fmt::format("truncate to {}", format_bytes(size)));
  }
  return {};
}

Result<void> PosixFile::allocate(std::uint64_t size) {
  CAIRN_TRY(check_range(size, 0, "allocate"));
  if (size == 0) return {};
  if (retried([&] { return ::fallocate(fd(), 0, 0, static_cast<off_t>(size)); }) == 0) return {};
  if (errno == EOPNOTSUPP || errno == ENOSYS) return {};
  return fail(fmt::format("allocate {}", format_bytes(size)));
}

Result<FileInfo> PosixFile::info() {
  struct stat raw{};
  if (::fstat(fd(), &raw) != 0) return fail("stat");
  return to_info(raw);
}

Result<void> PosixFile::sync() {
  if (retried([&] { return ::fsync(fd()); }) == 0) return {};
  if (errno == EINVAL) errno = EOPNOTSUPP;
  return fail("sync");
}

Result<void> PosixFile::sync_file_system() {
  if (!can_sync_file_system())
    errno = EOPNOTSUPP;
  else if (retried([&] { return ::syncfs(fd()); }) == 0)
    return {};
  return fail("sync the file system");
}

bool PosixFile::can_sync_file_system() const {
  struct statfs raw{};
  return kernel_reports_batch_errors() && ::fstatfs(fd(), &raw) == 0 &&
         file_system_type(static_cast<std::uint64_t>(raw.f_type)).batch_sync;
}

Result<bool> PosixFile::try_lock() {
  struct flock lock = whole_file_lock();
  if (retried([&] { return ::fcntl(fd(), F_OFD_SETLK, &lock); }) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  if (errno == EINVAL) errno = ENOLCK;
  return fail("lock");
}

Result<bool> PosixFile::is_locked_elsewhere() {
  struct flock lock = whole_file_lock();
  if (retried([&] { return ::fcntl(fd(), F_OFD_GETLK, &lock); }) == 0)
    return lock.l_type != F_UNLCK;
  if (errno == EINVAL) errno = ENOLCK;
  return fail("look for the lock of");
}

// Offsets are signed in the kernel.
Result<void> PosixFile::check_range(std::uint64_t offset, std::uint64_t size,
                                    std::string_view doing) const {
  const auto end = checked_add(offset, size);
  if (end && *end <= static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return {};
  return errno_error(EFBIG, doing, path_);
}

}  // namespace cairn::storage
