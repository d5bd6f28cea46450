// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/posix.h"

#include <algorithm>
#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cairn/storage/local/errno.h"
#include "cairn/storage/local/file_system_type.h"
#include "cairn/storage/local/open_beneath.h"
#include "cairn/storage/local/posix_file.h"

namespace cairn::storage {
namespace {

constexpr mode_t kDirectoryMode = 0777;

const PosixFile& as_posix(const File& file) { return static_cast<const PosixFile&>(file); }

std::string full_path(const File* at, const std::string& path) {
  return at == nullptr ? path : as_posix(*at).path() + "/" + path;
}

int open_flags(const OpenOptions& options) {
  // O_NONBLOCK: a pipe in the place of a file must not stop us. It means nothing to a file.
  int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  switch (options.access) {
    case OpenOptions::Access::kRead:
      flags |= O_RDONLY;
      break;
    case OpenOptions::Access::kReadWrite:
      flags |= O_RDWR;
      break;
    case OpenOptions::Access::kDirectory:
      flags |= O_RDONLY | O_DIRECTORY;
      break;
  }
  if (options.create) flags |= O_CREAT;
  if (options.exclusive) flags |= O_EXCL;
  if (options.direct) flags |= O_DIRECT;
  return flags;
}

UniqueFd open_following(int dir, const char* path, int flags) {
  return UniqueFd(retried([&] { return ::openat(dir, path, flags, 0666); }));
}

// Of a path that the user gave: the last component is no link.
UniqueFd open_given(const char* path, int flags) {
  UniqueFd fd = open_following(AT_FDCWD, path, flags | O_NOFOLLOW);
  if (fd.valid() || errno != ENOTDIR) return fd;
  struct stat raw{};
  const bool link = ::lstat(path, &raw) == 0 && S_ISLNK(raw.st_mode);
  errno = link ? ELOOP : ENOTDIR;
  return fd;
}

Error outside(const File* at, const std::string& path, std::string_view doing) {
  return Error(Code::kInvalidArgument, "fs/outside",
               fmt::format("cannot {}: the path leaves its directory", doing))
      .in(full_path(at, path));
}

// EXDEV is open_beneath()'s; opening knows no other.
Error open_error(const File* at, const std::string& path, std::string_view doing) {
  if (errno == EXDEV) return outside(at, path, doing);
  return errno_error(errno, doing, full_path(at, path));
}

/// A name in a directory, for the calls that change names.
struct Slot {
  UniqueFd held;
  int dir = AT_FDCWD;
  std::string name;
};

Result<Slot> find_slot(const File* at, const std::string& path, std::string_view doing) {
  Slot slot;
  slot.name = path;
  if (at == nullptr) return slot;
  slot.dir = as_posix(*at).fd();
  const std::size_t slash = path.find_last_of('/');
  slot.name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (slot.name == "..") return outside(at, path, doing);
  if (slash == std::string::npos) return slot;
  slot.held = open_beneath(slot.dir, path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY);
  if (!slot.held.valid()) return open_error(at, path, doing);
  slot.dir = slot.held.get();
  return slot;
}

using UniqueDir = std::unique_ptr<DIR, int (*)(DIR*)>;

Result<FileKind> entry_kind(const PosixFile& directory, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return FileKind::kFile;
    case DT_DIR:
      return FileKind::kDirectory;
    case DT_LNK:
      return FileKind::kSymlink;
    case DT_UNKNOWN:
      break;
    default:
      return FileKind::kOther;
  }
  struct stat raw{};
  if (::fstatat(directory.fd(), entry.d_name, &raw, AT_SYMLINK_NOFOLLOW) != 0) {
    return directory.fail("list");
  }
  return kind_of(raw.st_mode);
}

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const File* at, const std::string& path,
                                     const OpenOptions& options) override {
    const int flags = open_flags(options);
    const int dir = at == nullptr ? AT_FDCWD : as_posix(*at).fd();
    UniqueFd fd;
    if (options.follow_links)
      fd = open_following(dir, path.c_str(), flags);
    else if (at == nullptr)
      fd = open_given(path.c_str(), flags);
    else
      fd = open_beneath(dir, path.c_str(), flags);
    if (!fd.valid()) {
      if (options.direct && errno == EINVAL) errno = EOPNOTSUPP;
      return open_error(at, path, options.create ? "create" : "open");
    }
    return std::make_unique<PosixFile>(std::move(fd), full_path(at, path), options.direct);
  }

  Result<FileInfo> stat(const File* at, const std::string& path, bool follow_links) override {
    struct stat raw{};
    int answer = 0;
    if (follow_links) {
      const int dir = at == nullptr ? AT_FDCWD : as_posix(*at).fd();
      answer = ::fstatat(dir, path.c_str(), &raw, 0);
    } else {
      CAIRN_TRY_ASSIGN(const Slot slot, find_slot(at, path, "stat"));
      answer = ::fstatat(slot.dir, slot.name.c_str(), &raw, AT_SYMLINK_NOFOLLOW);
    }
    if (answer != 0) return errno_error(errno, "stat", full_path(at, path));
    return to_info(raw);
  }

  Result<std::vector<DirEntry>> list(const File& directory) override {
    const PosixFile& opened = as_posix(directory);
    // A descriptor of its own, because the position in the directory belongs to the descriptor.
    UniqueFd fd = open_following(opened.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!fd.valid()) return opened.fail("list");
    const UniqueDir stream(::fdopendir(fd.get()), &::closedir);
    if (!stream) return opened.fail("list");
    fd.release();
    std::vector<DirEntry> entries;
    for (errno = 0; const dirent* entry = ::readdir(stream.get()); errno = 0) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      auto kind = entry_kind(opened, *entry);
      if (!kind && kind.error().code() == Code::kNotFound) continue;
      if (!kind) return std::move(kind).error();
      entries.push_back({std::string(name), *kind});
    }
    if (errno != 0) return opened.fail("list");
    std::ranges::sort(entries, {}, &DirEntry::name);
    return entries;
  }

  Result<void> make_directory(const File* at, const std::string& path) override {
    return change(at, path, "make the directory", [](const Slot& slot) {
      return ::mkdirat(slot.dir, slot.name.c_str(), kDirectoryMode);
    });
  }
  Result<void> remove_file(const File* at, const std::string& path) override {
    return change(at, path, "remove",
                  [](const Slot& slot) { return ::unlinkat(slot.dir, slot.name.c_str(), 0); });
  }
  Result<void> remove_directory(const File* at, const std::string& path) override {
    return change(at, path, "remove the directory", [](const Slot& slot) {
      return ::unlinkat(slot.dir, slot.name.c_str(), AT_REMOVEDIR);
    });
  }

  Result<void> rename(const File* from_at, const std::string& from, const File* to_at,
                      const std::string& to) override {
    CAIRN_TRY_ASSIGN(const Slot source, find_slot(from_at, from, "rename"));
    CAIRN_TRY_ASSIGN(const Slot target, find_slot(to_at, to, "rename"));
    if (::renameat(source.dir, source.name.c_str(), target.dir, target.name.c_str()) == 0)
      return {};
    // Over a directory that is not empty: POSIX allows either, and file systems differ.
    if (errno == EEXIST) errno = ENOTEMPTY;
    return pair_error("rename", full_path(from_at, from), full_path(to_at, to));
  }

  Result<void> link(const File* from_at, const std::string& from, const File* to_at,
                    const std::string& to) override {
    CAIRN_TRY_ASSIGN(const Slot source, find_slot(from_at, from, "link"));
    CAIRN_TRY_ASSIGN(const Slot target, find_slot(to_at, to, "link"));
    if (::linkat(source.dir, source.name.c_str(), target.dir, target.name.c_str(), 0) == 0)
      return {};
    if (errno == EPERM) errno = EOPNOTSUPP;
    return pair_error("link", full_path(from_at, from), full_path(to_at, to));
  }

  Result<SpaceInfo> space(const File& file) override {
    struct statfs raw{};
    const PosixFile& opened = as_posix(file);
    if (retried([&] { return ::fstatfs(opened.fd(), &raw); }) != 0) return opened.fail("statfs");
    const auto block = static_cast<std::uint64_t>(raw.f_frsize != 0 ? raw.f_frsize : raw.f_bsize);
    FileSystemType type = file_system_type(static_cast<std::uint64_t>(raw.f_type));
    return SpaceInfo{.total = raw.f_blocks * block,
                     .available = raw.f_bavail * block,
                     .type = std::move(type.name),
                     .in_memory = type.in_memory};
  }

 private:
  template <typename Call>
  static Result<void> change(const File* at, const std::string& path, std::string_view doing,
                             Call call) {
    CAIRN_TRY_ASSIGN(const Slot slot, find_slot(at, path, doing));
    if (retried([&] { return call(slot); }) == 0) return {};
    return errno_error(errno, doing, full_path(at, path));
  }

  static Error pair_error(std::string_view doing, const std::string& from, const std::string& to) {
    return errno_error(errno, doing, fmt::format("{} to {}", from, to));
  }
};

}  // namespace

FileSystem& posix_file_system() {
  static auto* const instance = new PosixFileSystem;  // background threads may outlive statics
  return *instance;
}

}  // namespace cairn::storage
