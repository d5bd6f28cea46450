// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/ownership.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/async/mutex.h"
#include "cairn/base/uri.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/commit/process_name.h"
#include "cairn/manifest/names.h"
#include "cairn/run/locked_checkpoint.h"

namespace cairn {

namespace {

constexpr std::size_t kMaxOwnerBytes = 64 * kKiB;
constexpr const char* kOwnerAside = ".cairn-owner.tmp";

std::string owner_name() { return std::string(kOwnerName); }

Error bad_file(const std::string& what) {
  return Error(Code::kCorrupt, "owner/bad-file",
               fmt::format("{}: {}; if no job saves there, remove the file", kOwnerName, what));
}

std::string describe(const OwnerFile& owner) {
  return fmt::format("process {} on {}, since {}", owner.process, owner.host, owner.time);
}

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

Result<bool> is_alive(const Directory& base) {
  const auto file = base.fs().open(base.handle(), owner_name(), {});
  if (!file) return file.error().code() == Code::kNotFound ? Result<bool>(false) : file.error();
  return (*file)->is_locked_elsewhere();
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
    if (!now) {
      return Error(Code::kFailedPrecondition, "run/owner-gone",
                   fmt::format("{} was removed; nothing is saved there any more by this job",
                               base_.path_of(owner_name())));
    }
    if (*now != claim_.file) {
      return Error(Code::kFailedPrecondition, "run/taken-over",
                   fmt::format("{} was taken over by {}; this job saves nothing there any more",
                               base_.path(), describe(*now)));
    }
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
  CAIRN_TRY_ASSIGN(const auto before, read_owner(base));
  if (before && !options.take_over) {
    CAIRN_TRY_ASSIGN(const bool alive, is_alive(base));
    if (alive) {
      return Error(Code::kFailedPrecondition, "run/owned",
                   fmt::format("{} belongs to another job ({}); end that one, or take the run over",
                               base.path(), describe(*before)));
    }
  }
  const ProcessName self = this_process();
  OwnerFile file{.run_id = options.run_id.empty() ? new_run_id() : options.run_id,
                 .epoch = before ? before->epoch + 1 : 1,
                 .host = self.host,
                 .process = self.process,
                 .boot_id = self.boot_id,
                 .time = format_timestamp(clock.wall())};
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

std::string dump_owner_file(const OwnerFile& owner) {
  return dump_json(Json::Object{{"run_id", owner.run_id},
                                {"epoch", owner.epoch},
                                {"host", owner.host},
                                {"process", owner.process},
                                {"boot_id", owner.boot_id},
                                {"time", owner.time}},
                   JsonStyle{.indent = 1}) +
         "\n";
}

Result<OwnerFile> parse_owner_file(std::string_view text) {
  const auto json = parse_json(text, JsonLimits{.bytes = kMaxOwnerBytes});
  if (!json || json->object() == nullptr) return bad_file("no JSON object");
  OwnerFile owner;
  const std::pair<const char*, std::string*> texts[] = {{"run_id", &owner.run_id},
                                                        {"host", &owner.host},
                                                        {"boot_id", &owner.boot_id},
                                                        {"time", &owner.time}};
  for (const auto& [name, value] : texts) {
    const Json* member = json->find(name);
    if (member == nullptr || member->text() == nullptr)
      return bad_file(fmt::format("'{}' is no text", name));
    *value = *member->text();
  }
  const Json* epoch = json->find("epoch");
  const Json* process = json->find("process");
  if (epoch == nullptr || !epoch->unsigned_integer() || process == nullptr || !process->integer())
    return bad_file("'epoch' or 'process' is no number");
  owner.epoch = *epoch->unsigned_integer();
  owner.process = *process->integer();
  return owner;
}

Result<std::optional<SeenOwner>> find_owner(const std::string& base, Runtime& runtime) {
  const auto directory = open_run(base, runtime);
  if (!directory) {
    if (directory.error().code() == Code::kNotFound) return std::optional<SeenOwner>();
    return directory.error();
  }
  CAIRN_TRY_ASSIGN(auto file, read_owner(*directory));
  if (!file) return std::optional<SeenOwner>();
  CAIRN_TRY_ASSIGN(const bool alive, is_alive(*directory));
  return std::optional(SeenOwner{*std::move(file), alive});
}

Result<std::shared_ptr<RunOwner>> RunOwner::take(const std::string& path,
                                                 const OwnershipOptions& options,
                                                 Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const LocalPath local, LocalPath::parse(path));
  CAIRN_TRY_ASSIGN(const Directory base, open_base(runtime.file_system(), local));
  CAIRN_TRY_ASSIGN(const auto info, base.stat("."));
  const Owners::Key key(&runtime.file_system(), info.device, info.inode);
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
                   DirectoryLock::acquire(base, runtime.clock(), kLockTimeout, kRunLockName));
  CAIRN_TRY_ASSIGN(Claim claimed, claim(base, options, runtime.clock()));
  std::shared_ptr<RunOwner> owner =
      std::make_shared<FileOwner>(base, key, runtime.clock(), std::move(claimed));
  owners.by_directory[key] = owner;
  return owner;
}

CommitGuard RunOwner::guard() {
  return [self = shared_from_this()] { return self->hold(); };
}

std::string new_run_id() { return new_id(); }

}  // namespace cairn
