// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/directory.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cairn/commit/process_name.h"
#include "cairn/manifest/names.h"

namespace cairn {

using storage::File;
using storage::FileKind;
using storage::FileSystem;
using storage::OpenOptions;

namespace {

constexpr OpenOptions kDirectory{.access = OpenOptions::Access::kDirectory};

bool is_missing(const Error& error) { return error.code() == Code::kNotFound; }

}  // namespace

Result<MadePath> make_path(FileSystem& fs, const LocalPath& path) {
  const auto info = fs.stat(nullptr, path, true);
  if (info) return MadePath();
  if (!is_missing(info.error())) return info.error();
  const LocalPath parent = path.parent();
  MadePath made;
  if (parent != path) {
    CAIRN_TRY_ASSIGN(made, make_path(fs, parent));
  }
  const auto last = fs.make_directory(nullptr, path);
  if (!last && last.error().code() != Code::kAlreadyExists) return last.error();
  made.changed.push_back(parent.text());
  made.is_new = last.has_value();
  return made;
}

Result<void> sync_path(FileSystem& fs, const std::vector<std::string>& directories) {
  OpenOptions followed = kDirectory;
  followed.follow_links = true;
  for (const std::string& directory : directories) {
    CAIRN_TRY_ASSIGN(const auto open, fs.open(nullptr, directory, followed));
    CAIRN_TRY(open->sync());
  }
  return {};
}

std::string parent_name(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "." : name.substr(0, slash);
}

Result<Directory> Directory::open(FileSystem& fs, const LocalPath& path, bool create) {
  if (create) {
    CAIRN_TRY_ASSIGN(const auto made, make_path(fs, path));
    CAIRN_TRY(sync_path(fs, made.changed));
  }
  // A reader may come through a link, a writer may not.
  OpenOptions options = kDirectory;
  options.follow_links = !create;
  CAIRN_TRY_ASSIGN(std::shared_ptr<File> handle, fs.open(nullptr, path, options));
  return Directory(fs, path, std::move(handle));
}

Result<Directory> Directory::open_below(const std::string& name) const {
  CAIRN_TRY_ASSIGN(std::shared_ptr<File> handle, fs_->open(handle_.get(), name, kDirectory));
  return Directory(*fs_, path_.below(name), std::move(handle));
}

Result<storage::FileInfo> Directory::stat(const std::string& name) const {
  return fs_->stat(handle_.get(), name, false);
}

Result<bool> Directory::exists(const std::string& name) const {
  const auto info = stat(name);
  if (info) return true;
  if (is_missing(info.error())) return false;
  return info.error();
}

Result<std::vector<storage::DirEntry>> Directory::list(const std::string& name) const {
  if (name == ".") return fs_->list(*handle_);
  CAIRN_TRY_ASSIGN(const auto directory, fs_->open(handle_.get(), name, kDirectory));
  return fs_->list(*directory);
}

Result<std::optional<std::string>> Directory::read(const std::string& name,
                                                   std::uint64_t limit) const {
  OpenOptions options;
  options.follow_links = true;
  auto file = fs_->open(handle_.get(), name, options);
  if (!file) {
    if (is_missing(file.error())) return std::optional<std::string>();
    return std::move(file).error();
  }
  CAIRN_TRY_ASSIGN(const auto info, (*file)->info());
  if (info.size > limit) {
    return Error(
        Code::kCorrupt, "checkpoint/file-too-large",
        fmt::format("{} has {} bytes; at most {} are expected", path_of(name), info.size, limit));
  }
  std::string text(info.size, '\0');
  CAIRN_TRY_ASSIGN(const std::size_t got,
                   (*file)->read_at(0, {reinterpret_cast<std::byte*>(text.data()), text.size()}));
  text.resize(got);
  return std::optional(std::move(text));
}

Result<std::unique_ptr<File>> Directory::open_file(const std::string& name, bool create) const {
  OpenOptions options{.access = OpenOptions::Access::kReadWrite};
  options.create = create;
  return fs_->open(handle_.get(), name, options);
}

Result<void> Directory::write_synced(const std::string& name, std::string_view content) const {
  auto file = fs_->open(handle_.get(), name, storage::kNewFile);
  if (!file && file.error().reason() == "fs/exists") {
    // Not truncated: it may be another name of somebody's file.
    CAIRN_TRY(fs_->remove_file(handle_.get(), name));
    file = fs_->open(handle_.get(), name, storage::kNewFile);
  }
  if (!file) return file.error();
  CAIRN_TRY((*file)->write_at(0, as_bytes(content)));
  return (*file)->sync();
}

Result<void> Directory::replace(const std::string& name, const std::string& aside,
                                std::string_view content) const {
  CAIRN_TRY(write_synced(aside, content));
  CAIRN_TRY(rename(aside, name));
  return sync();
}

Result<void> Directory::make(const std::string& name) const {
  if (name == ".") return {};
  CAIRN_TRY_ASSIGN(const bool there, exists(name));
  if (there) return {};
  CAIRN_TRY(make(parent_name(name)));
  return fs_->make_directory(handle_.get(), name);
}

Result<void> Directory::rename(const std::string& from, const std::string& to) const {
  return fs_->rename(handle_.get(), from, handle_.get(), to);
}

Result<void> Directory::link_exclusive(const std::string& from, const std::string& to) const {
  auto linked = fs_->link(handle_.get(), from, handle_.get(), to);
  if (linked || linked.error().reason() != "fs/unsupported") return linked;
  CAIRN_TRY_ASSIGN(const bool taken, exists(to));
  if (taken) return Error(Code::kAlreadyExists, "fs/exists", path_of(to) + " is there already");
  return rename(from, to);
}

Result<void> Directory::sync(const std::string& name) const {
  if (name == ".") return handle_->sync();
  CAIRN_TRY_ASSIGN(const auto directory, fs_->open(handle_.get(), name, kDirectory));
  return directory->sync();
}

Result<void> Directory::remove_tree(const std::string& name) const {
  const auto or_gone = [](Result<void> removed) {
    return removed || !is_missing(removed.error()) ? std::move(removed) : Result<void>();
  };
  const auto info = stat(name);
  if (!info) return or_gone(info.error());
  if (info->kind != FileKind::kDirectory) return or_gone(fs_->remove_file(handle_.get(), name));
  const auto entries = list(name);
  if (!entries) return or_gone(entries.error());
  for (const auto& entry : *entries) CAIRN_TRY(remove_tree(name + "/" + entry.name));
  return or_gone(fs_->remove_directory(handle_.get(), name));
}

namespace {

// The lock, or nothing if somebody else has it, or if it lies on a file that is no longer the one
// at its name: whoever unlinked the lock by hand made a second one.
Result<std::unique_ptr<File>> try_acquire(const Directory& directory, const std::string& name) {
  CAIRN_TRY_ASSIGN(auto file, directory.open_file(name, true));
  auto locked = file->try_lock();
  if (!locked) {
    if (locked.error().reason() != "fs/unsupported") return std::move(locked).error();
    return Error(
        Code::kFailedPrecondition, "commit/locks-unsupported",
        fmt::format("{} lies on a file system without file locks, so two writers could not be kept "
                    "apart; save to another file system",
                    directory.path()));
  }
  if (!*locked) return std::unique_ptr<File>();
  CAIRN_TRY_ASSIGN(const auto mine, file->info());
  const auto there = directory.stat(name);
  if (!there && !is_missing(there.error())) return there.error();
  if (!there || mine.inode != there->inode || mine.device != there->device)
    return std::unique_ptr<File>();
  return file;
}

/// For the messages of those who wait. A file with a second name may be somebody's: it serves as
/// lock, and is not written.
Result<void> name_holder(File& lock) {
  CAIRN_TRY_ASSIGN(const auto info, lock.info());
  if (info.links != 1) return {};
  const ProcessName self = this_process();
  const std::string holder = fmt::format("process {} on {}\n", self.process, self.host);
  // In place: there is room for that on a full disk. Whoever removes something needs the lock too.
  const auto named = lock.write_at(0, as_bytes(holder));
  if (named) lock.truncate(holder.size()).ignore_error("only the first line counts");
  return {};
}

Error gone(const Directory& directory) {
  return Error(Code::kNotFound, "commit/directory-gone",
               fmt::format("{} was removed or replaced meanwhile", directory.path()));
}

Result<void> check_found_by_path(const Directory& directory) {
  CAIRN_TRY_ASSIGN(const auto mine, directory.stat("."));
  const auto there = directory.fs().stat(nullptr, directory.path(), true);
  if (!there && !is_missing(there.error())) return there.error();
  const bool same = there && mine.inode == there->inode && mine.device == there->device;
  return same ? Result<void>() : gone(directory);
}

}  // namespace

Result<DirectoryLock> DirectoryLock::acquire(const Directory& directory, Clock& clock,
                                             std::chrono::nanoseconds timeout,
                                             std::string_view given) {
  const std::string name(given);
  const auto deadline = clock.monotonic() + timeout;
  std::chrono::nanoseconds wait = std::chrono::milliseconds(1);
  while (true) {
    auto tried = try_acquire(directory, name);
    if (!tried) return is_missing(tried.error()) ? gone(directory) : std::move(tried).error();
    if (auto& file = *tried) {
      CAIRN_TRY(check_found_by_path(directory));
      CAIRN_TRY(name_holder(*file));
      return DirectoryLock(std::move(file));
    }
    if (clock.monotonic() >= deadline) {
      CAIRN_TRY_ASSIGN(auto holder, directory.read(name, 4096));
      if (holder) holder->resize(std::min(holder->find('\n'), holder->size()));
      return Error(Code::kDeadlineExceeded, "commit/lock-timeout",
                   fmt::format("{} is locked by {}; it did not let go in time", directory.path(),
                               holder && !holder->empty() ? *holder : "another process"));
    }
    clock.pause(wait);
    wait = std::min<std::chrono::nanoseconds>(wait * 2, std::chrono::milliseconds(100));
  }
}

Result<void> remove_unused(FileSystem& fs, Clock& clock, const LocalPath& path) {
  if (fs.remove_directory(nullptr, path)) return {};
  CAIRN_TRY_ASSIGN(const Directory directory, Directory::open(fs, path, false));
  CAIRN_TRY_ASSIGN(const auto lock,
                   DirectoryLock::acquire(directory, clock, std::chrono::nanoseconds(0)));
  CAIRN_TRY_ASSIGN(const auto names, directory.list());
  if (names.size() != 1) return {};  // somebody's files beside the lock
  CAIRN_TRY(fs.remove_file(directory.handle(), std::string(kLockName)));
  // Fails if somebody has made a lock of his own by now; then the directory is his.
  return fs.remove_directory(nullptr, path);
}

}  // namespace cairn
