// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/lossy_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "cairn/storage/local/errno.h"

namespace cairn::testing {

using storage::DirEntry;
using storage::errno_error;
using storage::File;
using storage::FileInfo;
using storage::FileKind;
using storage::OpenOptions;
using storage::SpaceInfo;

namespace {

constexpr std::size_t kLongestName = 255;

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (!part.empty() && part != ".") parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

}  // namespace

class LossyFile final : public File {
 public:
  LossyFile(LossyFileSystem& fs, LossyDisk::Id id, std::string path, bool writable)
      : fs_(fs), id_(id), path_(std::move(path)), writable_(writable) {}
  ~LossyFile() override {
    MutexLock lock(fs_.mutex_);
    const auto held = fs_.locks_.find(id_);
    if (held != fs_.locks_.end() && held->second == this) fs_.locks_.erase(held);
  }

  LossyDisk::Id id() const { return id_; }
  const std::string& path() const { return path_; }

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan out) override {
    MutexLock lock(fs_.mutex_);
    CAIRN_TRY(fs_.begin("read", path_, false));
    if (fs_.disk_.is_directory(id_)) return errno_error(EISDIR, "read", path_);
    const std::string& bytes = fs_.disk_.bytes(id_);
    if (offset >= bytes.size()) return std::size_t{0};
    const std::size_t size = std::min<std::size_t>(out.size(), bytes.size() - offset);
    std::memcpy(out.data(), bytes.data() + offset, size);
    return size;
  }

  Result<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
    MutexLock lock(fs_.mutex_);
    const bool was_dead = fs_.dead_;
    auto begun = fs_.begin("write", path_, true);
    if (!writable_) return errno_error(EBADF, "write", path_);
    if (!begun && !was_dead) fs_.disk_.write(id_, offset, bytes.first(bytes.size() / 2));
    if (begun) fs_.disk_.write(id_, offset, bytes);
    return begun;
  }

  Result<void> truncate(std::uint64_t size) override { return resize("truncate", size, true); }
  Result<void> allocate(std::uint64_t size) override { return resize("allocate", size, false); }

  Result<FileInfo> info() override {
    MutexLock lock(fs_.mutex_);
    CAIRN_TRY(fs_.begin("info", path_, false));
    return fs_.info(id_);
  }

  Result<void> sync() override {
    MutexLock lock(fs_.mutex_);
    auto begun = fs_.begin("sync", path_, true);
    if (!begun && !fs_.dead_) fs_.disk_.give_up_bytes(id_);
    if (!begun) return begun;
    if (fs_.disk_.is_directory(id_)) {
      fs_.disk_.sync_names(id_);
    } else {
      fs_.disk_.sync_bytes(id_);
    }
    return {};
  }

  Result<void> sync_file_system() override {
    MutexLock lock(fs_.mutex_);
    auto begun = fs_.begin("sync-file-system", path_, true);
    if (begun) fs_.disk_.sync_everything();
    if (!begun && !fs_.dead_) fs_.disk_.give_up_all_bytes();
    return begun;
  }
  bool can_sync_file_system() const override { return true; }

  Result<bool> try_lock() override {
    MutexLock lock(fs_.mutex_);
    CAIRN_TRY(fs_.begin("lock", path_, false));
    if (!writable_) return errno_error(EBADF, "lock", path_);
    return fs_.locks_.try_emplace(id_, this).first->second == this;
  }

  Result<bool> is_locked_elsewhere() override {
    MutexLock lock(fs_.mutex_);
    CAIRN_TRY(fs_.begin("lock", path_, false));
    const auto held = fs_.locks_.find(id_);
    return held != fs_.locks_.end() && held->second != this;
  }

 private:
  Result<void> resize(const char* doing, std::uint64_t size, bool may_shrink) {
    MutexLock lock(fs_.mutex_);
    CAIRN_TRY(fs_.begin(doing, path_, true));
    if (!writable_) return errno_error(EBADF, doing, path_);
    if (may_shrink || size > fs_.disk_.bytes(id_).size()) fs_.disk_.truncate(id_, size);
    return {};
  }

  LossyFileSystem& fs_;
  const LossyDisk::Id id_;
  const std::string path_;
  const bool writable_;
};

namespace {

const LossyFile& as_lossy(const File& file) { return static_cast<const LossyFile&>(file); }

std::string full_path(const File* at, const std::string& path) {
  std::string whole = at == nullptr ? "" : as_lossy(*at).path();
  if (whole == "/") whole.clear();
  for (const std::string& part : components(path)) whole += "/" + part;
  return whole.empty() ? "/" : whole;
}

std::string both_paths(const File* from_at, const std::string& from, const File* to_at,
                       const std::string& to) {
  return full_path(from_at, from) + " to " + full_path(to_at, to);
}

}  // namespace

std::vector<LossyFileSystem::Operation> LossyFileSystem::operations() const {
  MutexLock lock(mutex_);
  return operations_;
}

void LossyFileSystem::fail_at(std::size_t index, int error_number) {
  MutexLock lock(mutex_);
  failures_[index] = error_number;
}

void LossyFileSystem::crash_after(std::size_t count) {
  MutexLock lock(mutex_);
  crash_ = count;
}

void LossyFileSystem::make_directories_unmovable() {
  MutexLock lock(mutex_);
  disk_.make_directories_unmovable();
}

std::unique_ptr<LossyFileSystem> LossyFileSystem::after_kill() const {
  MutexLock lock(mutex_);
  return std::make_unique<LossyFileSystem>(disk_);
}

std::unique_ptr<LossyFileSystem> LossyFileSystem::after_power_cut() const {
  MutexLock lock(mutex_);
  return std::make_unique<LossyFileSystem>(disk_.after_power_cut(std::nullopt));
}

std::unique_ptr<LossyFileSystem> LossyFileSystem::after_power_cut(std::uint64_t seed) const {
  MutexLock lock(mutex_);
  return std::make_unique<LossyFileSystem>(disk_.after_power_cut(seed));
}

std::map<std::string, std::string> LossyFileSystem::snapshot() const {
  MutexLock lock(mutex_);
  return disk_.snapshot();
}

Result<void> LossyFileSystem::begin(const char* name, std::string path, bool changes) {
  const std::size_t index = operations_.size();
  if (index >= crash_) {
    dead_ = true;
    return Error(Code::kInternal, "lossy/crashed", "the process is dead").in(path);
  }
  const auto failure = failures_.find(index);
  operations_.push_back({name, std::move(path), changes});
  if (failure == failures_.end()) return {};
  return errno_error(failure->second, name, operations_.back().path);
}

Result<LossyFileSystem::Entry> LossyFileSystem::find(const File* at, const std::string& path,
                                                     const char* doing) {
  Entry entry{{at == nullptr ? LossyDisk::kRoot : as_lossy(*at).id(), ""}, std::nullopt};
  entry.target = entry.slot.directory;
  for (const std::string& part : components(path)) {
    if (part == "..") {
      return Error(Code::kInvalidArgument, "fs/outside", "the path leaves its directory").in(path);
    }
    int wrong = part.size() > kLongestName ? ENAMETOOLONG : 0;
    if (!entry.target) wrong = ENOENT;
    if (entry.target && !disk_.is_directory(*entry.target)) wrong = ENOTDIR;
    if (wrong != 0) return errno_error(wrong, doing, full_path(at, path));
    entry.slot = {*entry.target, part};
    entry.target = disk_.find(entry.slot);
  }
  return entry;
}

Result<LossyDisk::Id> LossyFileSystem::open_target(const Entry& entry, const OpenOptions& options,
                                                   const std::string& path) {
  using Access = OpenOptions::Access;
  int wrong = 0;
  if (options.direct) {
    wrong = EOPNOTSUPP;
  } else if (!entry.target) {
    // Nothing is made in a directory that was removed while it was open.
    const bool can = options.create && disk_.links(entry.slot.directory) > 0;
    wrong = can ? 0 : ENOENT;
  } else if (options.create && options.exclusive) {
    wrong = EEXIST;
  } else if (disk_.is_directory(*entry.target)) {
    wrong = options.access == Access::kReadWrite || options.create ? EISDIR : 0;
  } else if (options.access == Access::kDirectory) {
    wrong = ENOTDIR;
  }
  if (wrong != 0) return errno_error(wrong, options.create ? "create" : "open", path);
  if (entry.target) return *entry.target;
  const LossyDisk::Id id = disk_.make(/*directory=*/false);
  disk_.change_names({{entry.slot, id}});
  return id;
}

Result<std::unique_ptr<File>> LossyFileSystem::open(const File* at, const std::string& path,
                                                    const OpenOptions& options) {
  MutexLock lock(mutex_);
  const char* name = options.create ? "create" : "open";
  const std::string whole = full_path(at, path);
  CAIRN_TRY(begin(name, whole, options.create));
  CAIRN_TRY_ASSIGN(const Entry entry, find(at, path, name));
  CAIRN_TRY_ASSIGN(const LossyDisk::Id id, open_target(entry, options, whole));
  return std::make_unique<LossyFile>(*this, id, whole,
                                     options.access == OpenOptions::Access::kReadWrite);
}

FileInfo LossyFileSystem::info(LossyDisk::Id id) const {
  return {.kind = disk_.is_directory(id) ? FileKind::kDirectory : FileKind::kFile,
          .size = disk_.bytes(id).size(),
          .device = 1,
          .inode = id,
          .modified_ns = disk_.modified_ns(id),
          .links = disk_.links(id)};
}

Result<FileInfo> LossyFileSystem::stat(const File* at, const std::string& path, bool) {
  MutexLock lock(mutex_);
  CAIRN_TRY(begin("stat", full_path(at, path), false));
  CAIRN_TRY_ASSIGN(const Entry entry, find(at, path, "stat"));
  if (!entry.target) return errno_error(ENOENT, "stat", full_path(at, path));
  return info(*entry.target);
}

Result<std::vector<DirEntry>> LossyFileSystem::list(const File& directory) {
  MutexLock lock(mutex_);
  const LossyFile& opened = as_lossy(directory);
  CAIRN_TRY(begin("list", opened.path(), false));
  if (!disk_.is_directory(opened.id())) return errno_error(ENOTDIR, "list", opened.path());
  std::vector<DirEntry> entries;
  for (const auto& [name, id] : disk_.entries(opened.id())) {
    entries.push_back({name, info(id).kind});
  }
  return entries;
}

Result<void> LossyFileSystem::make_directory(const File* at, const std::string& path) {
  MutexLock lock(mutex_);
  const std::string whole = full_path(at, path);
  CAIRN_TRY(begin("make-directory", whole, true));
  CAIRN_TRY_ASSIGN(const Entry entry, find(at, path, "make the directory"));
  int wrong = entry.target ? EEXIST : 0;
  if (disk_.links(entry.slot.directory) == 0) wrong = ENOENT;
  if (wrong != 0) return errno_error(wrong, "make the directory", whole);
  disk_.change_names({{entry.slot, disk_.make(/*directory=*/true)}});
  return {};
}

Result<void> LossyFileSystem::remove_file(const File* at, const std::string& path) {
  MutexLock lock(mutex_);
  const std::string whole = full_path(at, path);
  CAIRN_TRY(begin("remove-file", whole, true));
  CAIRN_TRY_ASSIGN(const Entry entry, find(at, path, "remove"));
  if (!entry.target) return errno_error(ENOENT, "remove", whole);
  if (disk_.is_directory(*entry.target)) return errno_error(EISDIR, "remove", whole);
  disk_.change_names({{entry.slot, std::nullopt}});
  return {};
}

Result<void> LossyFileSystem::remove_directory(const File* at, const std::string& path) {
  MutexLock lock(mutex_);
  const std::string whole = full_path(at, path);
  CAIRN_TRY(begin("remove-directory", whole, true));
  CAIRN_TRY_ASSIGN(const Entry entry, find(at, path, "remove the directory"));
  int wrong = 0;
  if (!entry.target) {
    wrong = ENOENT;
  } else if (!disk_.is_directory(*entry.target)) {
    wrong = ENOTDIR;
  } else if (entry.slot.name.empty()) {
    wrong = EINVAL;
  } else if (!disk_.entries(*entry.target).empty()) {
    wrong = ENOTEMPTY;
  }
  if (wrong != 0) return errno_error(wrong, "remove the directory", whole);
  disk_.change_names({{entry.slot, std::nullopt}});
  return {};
}

Result<void> LossyFileSystem::check_rename(const Entry& from, const Entry& to,
                                           const std::string& both) {
  int wrong = 0;
  if (from.slot.name.empty() || to.slot.name.empty()) {
    wrong = EBUSY;
  } else if (!from.target || disk_.links(to.slot.directory) == 0) {
    wrong = ENOENT;
  } else if (!disk_.is_movable(*from.target)) {
    wrong = EXDEV;
  } else if (disk_.is_directory(*from.target) && disk_.is_below(to.slot.directory, *from.target)) {
    wrong = EINVAL;
  } else if (to.target && disk_.is_below(from.slot.directory, *to.target)) {
    wrong = ENOTEMPTY;
  } else if (to.target && disk_.is_directory(*to.target)) {
    if (!disk_.is_directory(*from.target))
      wrong = EISDIR;
    else if (!disk_.entries(*to.target).empty())
      wrong = ENOTEMPTY;
  } else if (to.target && disk_.is_directory(*from.target)) {
    wrong = ENOTDIR;
  }
  if (wrong != 0) return errno_error(wrong, "rename", both);
  return {};
}

Result<void> LossyFileSystem::rename(const File* from_at, const std::string& from,
                                     const File* to_at, const std::string& to) {
  MutexLock lock(mutex_);
  const std::string both = both_paths(from_at, from, to_at, to);
  CAIRN_TRY(begin("rename", both, true));
  CAIRN_TRY_ASSIGN(const Entry source, find(from_at, from, "rename"));
  CAIRN_TRY_ASSIGN(const Entry target, find(to_at, to, "rename"));
  const bool same = source.target && source.target == target.target;
  if (same && !source.slot.name.empty()) return {};
  CAIRN_TRY(check_rename(source, target, both));
  disk_.change_names({{target.slot, source.target}, {source.slot, std::nullopt}});
  return {};
}

Result<void> LossyFileSystem::link(const File* from_at, const std::string& from, const File* to_at,
                                   const std::string& to) {
  MutexLock lock(mutex_);
  const std::string both = both_paths(from_at, from, to_at, to);
  CAIRN_TRY(begin("link", both, true));
  CAIRN_TRY_ASSIGN(const Entry source, find(from_at, from, "link"));
  CAIRN_TRY_ASSIGN(const Entry target, find(to_at, to, "link"));
  int wrong = 0;
  if (!source.target || disk_.links(target.slot.directory) == 0) {
    wrong = ENOENT;
  } else if (target.target) {
    wrong = EEXIST;
  } else if (disk_.is_directory(*source.target)) {
    wrong = EOPNOTSUPP;
  }
  if (wrong != 0) return errno_error(wrong, "link", both);
  disk_.change_names({{target.slot, source.target}});
  return {};
}

Result<SpaceInfo> LossyFileSystem::space(const File& file) {
  MutexLock lock(mutex_);
  CAIRN_TRY(begin("space", as_lossy(file).path(), false));
  return SpaceInfo{.total = kGiB, .available = kGiB, .type = "lossy"};
}

}  // namespace cairn::testing
