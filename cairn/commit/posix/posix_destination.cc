// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/posix_destination.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/commit/posix/file_attempt.h"
#include "cairn/commit/posix/file_rank_board.h"
#include "cairn/commit/posix/look_at_attempts.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/commit/process_name.h"
#include "cairn/manifest/names.h"
#include "cairn/storage/local/local_store.h"

namespace cairn {

namespace {

Destination::Child::Kind kind_of(storage::FileKind kind) {
  if (kind == storage::FileKind::kDirectory) return Destination::Child::Kind::kDirectory;
  return kind == storage::FileKind::kSymlink ? Destination::Child::Kind::kLink
                                             : Destination::Child::Kind::kFile;
}

class PosixDestination final : public Destination {
 public:
  PosixDestination(storage::FileSystem& fs, Clock& clock, LocalPath path)
      : fs_(fs), clock_(clock), path_(std::move(path)) {}

  const std::string& path() const override { return path_; }

  Result<void> make() override {
    CAIRN_TRY_ASSIGN(made_, make_path(fs_, path_));
    return {};
  }

  void unmake() override {
    if (!made_.is_new) return;
    remove_unused(fs_, clock_, path_).ignore_error("the next save takes it as it is");
  }

  Result<std::unique_ptr<Attempt>> begin(const AttemptOptions& options) override {
    CAIRN_TRY(sync_path(fs_, made_.changed));
    return begin_attempt(fs_, clock_, path_, options);
  }

  Result<std::unique_ptr<AttemptRank>> join(const RankOfAttempt& place) override {
    return join_attempt(fs_, clock_, path_, place);
  }

  Result<void> abandon(const RankOfAttempt& place, const Error& error) override {
    return abandon_unjoined(fs_, clock_, path_, place, error);
  }

  Result<Snapshot> snapshot() override { return take_snapshot(fs_, path_); }

  Result<std::vector<SeenAttempt>> look() override { return look_at_attempts(fs_, path_); }

  // One open directory: a rename of it changes nothing for who reads from it.
  Result<std::shared_ptr<storage::Store>> open_below(const std::string& directory) override {
    CAIRN_TRY_ASSIGN(auto store, storage::open_local_store(fs_, path_.below(directory)));
    return std::shared_ptr<storage::Store>(std::move(store));
  }

  Result<std::vector<Child>> list(const std::string& directory) override {
    CAIRN_TRY_ASSIGN(const Directory dest, open());
    CAIRN_TRY_ASSIGN(const auto entries, dest.list(directory.empty() ? "." : directory));
    std::vector<Child> children;
    children.reserve(entries.size());
    for (const storage::DirEntry& entry : entries)
      children.push_back({entry.name, kind_of(entry.kind)});
    return children;
  }

  Result<storage::ObjectInfo> stat(const std::string& name) override {
    CAIRN_TRY_ASSIGN(const auto info, fs_.stat(nullptr, path_.below(name), false));
    return storage::ObjectInfo{info.size, storage::generation_of(info)};
  }

  Result<std::optional<std::string>> read(const std::string& name, std::uint64_t limit) override {
    CAIRN_TRY_ASSIGN(const Directory dest, open());
    return dest.read(name, limit);
  }

  Result<std::string> version_of(const std::string& directory) override {
    const std::string path = directory.empty() ? path_.text() : path_.below(directory).text();
    CAIRN_TRY_ASSIGN(const auto info, fs_.stat(nullptr, path, true));
    return storage::generation_of(info);
  }

  Result<void> write(const std::string& name, const std::string& text) override {
    CAIRN_TRY_ASSIGN(const Directory dest, open());
    return dest.replace(name, fmt::format("{}.{}", name, this_process().process), text);
  }

  Result<void> remove(const std::string& name) override {
    CAIRN_TRY_ASSIGN(const Directory dest, open());
    const auto removed = fs_.remove_file(dest.handle(), name);
    return !removed && removed.error().code() == Code::kNotFound ? Result<void>() : removed;
  }

  Result<void> update(const std::string& name, const Change& change) override {
    CAIRN_TRY_ASSIGN(const Directory dest, open());
    CAIRN_TRY_ASSIGN(const auto lock, DirectoryLock::acquire(dest, clock_, kLockTimeout));
    CAIRN_TRY(finish_all_decided(dest));
    CAIRN_TRY_ASSIGN(const Snapshot now, take_snapshot(fs_, path_));
    CAIRN_TRY_ASSIGN(const auto before, dest.read(name, kMaxMarkBytes));
    CAIRN_TRY_ASSIGN(const auto after, change(now, before));
    if (after == before) return {};
    if (name == kMarkName) CAIRN_TRY(recover_locked(dest));
    if (after) return dest.replace(name, kAsideName, *after);
    CAIRN_TRY(dest.remove_tree(name));
    return dest.sync();
  }

 private:
  Result<Directory> open() const { return Directory::open(fs_, path_, false); }

  storage::FileSystem& fs_;
  Clock& clock_;
  const LocalPath path_;
  MadePath made_;
};

}  // namespace

std::unique_ptr<Destination> open_posix_destination(storage::FileSystem& fs, Clock& clock,
                                                    LocalPath path) {
  return std::make_unique<PosixDestination>(fs, clock, std::move(path));
}

}  // namespace cairn
