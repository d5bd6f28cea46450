// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/file_owner.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "cairn/async/mutex.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

constexpr const char* kOwnerAside = ".cairn-owner.tmp";

std::string owner_name() { return std::string(kOwnerName); }

/// A run directory may be reached through a link; only a new one is made.
Result<Directory> open_base(storage::FileSystem& fs, const LocalPath& path) {
  auto there = Directory::open(fs, path, false);
  if (there || there.error().code() != Code::kNotFound) return there;
  return Directory::open(fs, path, true);
}

Result<std::optional<OwnerFile>> read_owner(const Directory& base) {
  CAIRN_TRY_ASSIGN(const auto text, base.read(owner_name(), kMaxOwnerBytes));
  if (!text) return std::optional<OwnerFile>();
  CAIRN_TRY_ASSIGN(auto owner, parse_owner_file(*text).in(base.path()));
  return std::optional(std::move(owner));
}

Result<std::optional<SeenOwner>> look_at_owner(const Directory& base) {
  CAIRN_TRY_ASSIGN(auto file, read_owner(base));
  if (!file) return std::optional<SeenOwner>();
  SeenOwner seen{*std::move(file)};
  const auto opened = base.fs().open(base.handle(), owner_name(), {});
  if (opened) {
    CAIRN_TRY_ASSIGN(seen.alive, (*opened)->is_locked_elsewhere());
  } else if (opened.error().code() != Code::kNotFound) {
    return opened.error();
  }
  return std::optional(std::move(seen));
}

/// The owners of this process by their directory: a lock does not tell one part of a process from
/// another. A name stays here until its lock is gone.
struct Owners {
  using Key = std::tuple<const storage::FileSystem*, std::uint64_t, std::uint64_t>;

  static Owners& of_this_process() {
    // Never destroyed: other threads may save while the program ends.
    static auto* const owners = new Owners;
    return *owners;
  }

  Mutex mutex;
  CondVar gone;
  std::map<Key, std::weak_ptr<RunOwner>> by_directory CAIRN_GUARDED_BY(mutex);
};

/// An owner file in place, and the lock on it.
struct Claim {
  OwnerFile file;
  std::unique_ptr<storage::File> alive;
};

class FileOwner final : public RunOwner {
 public:
  FileOwner(Directory base, Owners::Key key, Clock& clock, Claim claim)
      : base_(std::move(base)), key_(key), clock_(clock), claim_(std::move(claim)) {}

  ~FileOwner() override {
    claim_.alive.reset();
    Owners& owners = Owners::of_this_process();
    const MutexLock lock(owners.mutex);
    const auto mine = owners.by_directory.find(key_);
    // Whoever took the run back is there by now.
    if (mine != owners.by_directory.end() && mine->second.expired())
      owners.by_directory.erase(mine);
    owners.gone.notify_all();
  }

  const std::string& run_id() const override { return claim_.file.run_id; }
  std::uint64_t epoch() const override { return claim_.file.epoch; }

  std::uint64_t next_number(std::uint64_t known) override {
    const MutexLock lock(mutex_);
    return number_ = std::max(number_, known) + 1;
  }

  Result<std::shared_ptr<void>> hold() override {
    CAIRN_TRY_ASSIGN(auto lock, DirectoryLock::acquire(base_, clock_, kLockTimeout, kRunLockName));
    CAIRN_TRY_ASSIGN(const auto now, read_owner(base_));
    CAIRN_TRY(check_owner(base_.path(), claim_.file, now));
    return std::shared_ptr<void>(std::make_shared<DirectoryLock>(std::move(lock)));
  }

 private:
  const Directory base_;
  const Owners::Key key_;
  Clock& clock_;
  Claim claim_;  // its lock says that we live
  Mutex mutex_;
  std::uint64_t number_ CAIRN_GUARDED_BY(mutex_) = 0;
};

/// REQUIRES: the run's lock is held.
Result<Claim> claim(const Directory& base, const OwnershipOptions& options, Clock& clock) {
  CAIRN_TRY_ASSIGN(const auto before, look_at_owner(base));
  CAIRN_TRY_ASSIGN(OwnerFile file, next_owner(base.path(), before, options, clock));
  // A new file each time: a lock on the old one, of whoever was taken over, says nothing any more.
  CAIRN_TRY(base.remove_tree(kOwnerAside));
  CAIRN_TRY_ASSIGN(auto alive, base.open_file(kOwnerAside, true));
  CAIRN_TRY(alive->try_lock());
  CAIRN_TRY(alive->write_at(0, as_bytes(dump_owner_file(file))));
  CAIRN_TRY(alive->sync());
  CAIRN_TRY(base.rename(kOwnerAside, owner_name()));
  CAIRN_TRY(base.sync());
  return Claim{std::move(file), std::move(alive)};
}

}  // namespace

Result<std::optional<SeenOwner>> find_file_owner(storage::FileSystem& fs, const LocalPath& path) {
  const auto base = Directory::open(fs, path, false);
  if (base) return look_at_owner(*base);
  if (base.error().code() == Code::kNotFound) return std::optional<SeenOwner>();
  return base.error();
}

Result<std::shared_ptr<RunOwner>> take_file_owner(storage::FileSystem& fs, Clock& clock,
                                                  const LocalPath& path,
                                                  const OwnershipOptions& options) {
  CAIRN_TRY_ASSIGN(const Directory base, open_base(fs, path));
  CAIRN_TRY_ASSIGN(const auto info, base.stat("."));
  const Owners::Key key(&fs, info.device, info.inode);
  Owners& owners = Owners::of_this_process();
  const MutexLock mine(owners.mutex);
  for (auto known = owners.by_directory.find(key); known != owners.by_directory.end();
       known = owners.by_directory.find(key)) {
    auto owner = known->second.lock();
    if (owner && (!options.take_over || owner->hold())) return owner;
    if (owner) break;
    owners.gone.wait(owners.mutex);
  }
  CAIRN_TRY_ASSIGN(const auto lock,
                   DirectoryLock::acquire(base, clock, kLockTimeout, kRunLockName));
  CAIRN_TRY_ASSIGN(Claim claimed, claim(base, options, clock));
  std::shared_ptr<RunOwner> owner =
      std::make_shared<FileOwner>(base, key, clock, std::move(claimed));
  owners.by_directory[key] = owner;
  return owner;
}

}  // namespace cairn
