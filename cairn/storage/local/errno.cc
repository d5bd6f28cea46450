// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/errno.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <sys/statvfs.h>

namespace cairn::storage {
namespace {

struct Meaning {
  int number;
  Code code;
  const char* reason;
  const char* sentence;
};

// EIO is not worth a retry: after a failed fsync the next one succeeds although the bytes are gone.
constexpr auto kMeanings = std::to_array<Meaning>({
    {ENOENT, Code::kNotFound, "fs/not-found", "no such file or directory"},
    {EEXIST, Code::kAlreadyExists, "fs/exists", "something is there already"},
    {ENOTEMPTY, Code::kFailedPrecondition, "fs/not-empty", "the directory is not empty"},
    {ENOSPC, Code::kResourceExhausted, "storage/no-space",
     "no space left on the file system; free some, or choose another place"},
    {EDQUOT, Code::kResourceExhausted, "storage/no-space",
     "the disk quota is used up; free some space, or ask for more"},
    {EFBIG, Code::kFailedPrecondition, "fs/file-too-large",
     "the file system or a limit (ulimit -f) allows no file that large"},
    {EACCES, Code::kPermissionDenied, "fs/permission",
     "permission denied; check owner and mode of the file and of the directories above it"},
    {EPERM, Code::kPermissionDenied, "fs/permission", "operation not permitted for this user"},
    {EROFS, Code::kPermissionDenied, "fs/read-only", "the file system is mounted read-only"},
    {ELOOP, Code::kFailedPrecondition, "fs/symlink",
     "a symbolic link is in the way; give the path it points to"},
    {ENOTDIR, Code::kFailedPrecondition, "fs/not-a-directory",
     "a component of the path is not a directory"},
    {EISDIR, Code::kFailedPrecondition, "fs/is-a-directory", "it is a directory, not a file"},
    {EXDEV, Code::kFailedPrecondition, "fs/cross-device",
     "the two places lie on different file systems"},
    {EBUSY, Code::kFailedPrecondition, "fs/busy", "it is in use, as a mount point for example"},
    {ESTALE, Code::kUnavailable, "fs/stale", "the server no longer knows the open file"},
    {ETIMEDOUT, Code::kUnavailable, "fs/timeout", "the file server did not answer in time"},
    {EIO, Code::kCorrupt, "fs/io",
     "input/output error; the device is failing, and what was written may be lost"},
    {EMFILE, Code::kResourceExhausted, "fs/too-many-files",
     "this process has too many files open; raise its limit (ulimit -n)"},
    {ENFILE, Code::kResourceExhausted, "fs/too-many-files", "the machine has too many files open"},
    {ENAMETOOLONG, Code::kInvalidArgument, "fs/name-too-long",
     "the name is too long for this file system"},
    {ENOMEM, Code::kResourceExhausted, "fs/no-memory", "the kernel has no memory left"},
    {ENOSYS, Code::kUnimplemented, "fs/unsupported", "this system cannot do that"},
    {EOPNOTSUPP, Code::kUnimplemented, "fs/unsupported", "this file system cannot do that"},
    {ENOLCK, Code::kUnimplemented, "fs/unsupported", "this file system has no locks"},
    {EINVAL, Code::kInvalidArgument, "fs/invalid", "the file system refused an argument"},
});

constexpr const char* kNoInodes =
    "no inodes left: the file system has room, but for no more files; delete some, or choose "
    "another place";

/// ENOSPC has two causes, and df shows only one of them.
bool lacks_inodes(std::string_view place) {
  for (std::string path(place); !path.empty(); path.resize(path.rfind('/'))) {
    struct statvfs info = {};
    if (statvfs(path.c_str(), &info) == 0)
      return info.f_files > 0 && info.f_favail == 0 && info.f_bavail > 0;
    if (path.find('/') == std::string::npos) break;
  }
  return false;
}

}  // namespace

Error errno_error(int number, std::string_view doing, std::string_view place,
                  std::source_location origin) {
  const auto* row = std::ranges::find(kMeanings, number, &Meaning::number);
  if (row == kMeanings.end()) {
    return Error(Code::kInternal, "fs/unexpected",
                 fmt::format("cannot {}: {} (errno {})", doing,
                             std::generic_category().message(number), number),
                 origin)
        .in(place);
  }
  const bool inodes = number == ENOSPC && lacks_inodes(place);
  return Error(row->code, row->reason,
               fmt::format("cannot {}: {}", doing, inodes ? kNoInodes : row->sentence), origin)
      .in(place);
}

}  // namespace cairn::storage
