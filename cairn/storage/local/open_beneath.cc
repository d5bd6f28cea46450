// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/open_beneath.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace cairn::storage {
namespace {

constexpr mode_t kMode = 0666;

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path = slash == std::string_view::npos ? "" : path.substr(slash + 1);
  }
  return parts;
}

bool leaves(std::string_view path) {
  if (path.starts_with('/')) return true;
  for (const std::string& part : components(path)) {
    if (part == "..") return true;
  }
  return false;
}

int openat_retried(int dir, const char* name, int flags) {
  int fd = -1;
  do {
    fd = ::openat(dir, name, flags | O_CLOEXEC, kMode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// With O_DIRECTORY the kernel says ENOTDIR for a link that O_NOFOLLOW stopped at.
UniqueFd open_component(int dir, const char* name, int flags) {
  UniqueFd fd(openat_retried(dir, name, flags | O_NOFOLLOW));
  if (!fd.valid() && errno == ENOTDIR) {
    struct stat info{};
    const bool link =
        ::fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
    errno = link ? ELOOP : ENOTDIR;
  }
  return fd;
}

bool has_openat2() {
  static const bool answer = [] {
    const UniqueFd fd = open_beneath_at_once(AT_FDCWD, ".", O_PATH);
    return fd.valid() || (errno != ENOSYS && errno != EPERM);
  }();
  return answer;
}

}  // namespace

UniqueFd open_beneath_at_once(int dir, const char* path, int flags) {
  if (leaves(path)) {
    errno = EXDEV;
    return {};
  }
  struct open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? kMode : 0;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, dir, path, &how, sizeof(how));
  } while (fd < 0 && errno == EINTR);
  return UniqueFd(static_cast<int>(fd));
}

UniqueFd open_beneath_by_steps(int dir, const char* path, int flags) {
  if (leaves(path)) {
    errno = EXDEV;
    return {};
  }
  const std::vector<std::string> parts = components(path);
  if (parts.empty()) return open_component(dir, path, flags);
  UniqueFd held;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    held = open_component(dir, parts[i].c_str(), O_PATH | O_DIRECTORY);
    if (!held.valid()) return held;
    dir = held.get();
  }
  return open_component(dir, parts.back().c_str(), flags);
}

UniqueFd open_beneath(int dir, const char* path, int flags) {
  return has_openat2() ? open_beneath_at_once(dir, path, flags)
                       : open_beneath_by_steps(dir, path, flags);
}

}  // namespace cairn::storage
