// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/posix_destination.h"

#include <utility>

#include "cairn/commit/posix/directory.h"
#include "cairn/commit/posix/file_attempt.h"
#include "cairn/commit/posix/file_rank_board.h"
#include "cairn/commit/posix/look_at_attempts.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/storage/local/local_store.h"

namespace cairn {

namespace {

class PosixDestination final : public Destination {
 public:
  PosixDestination(storage::FileSystem& fs, Clock& clock, LocalPath path)
      : fs_(fs), clock_(clock), path_(std::move(path)) {}

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

  Result<std::unique_ptr<AttemptRank>> join(const RankPlace& place) override {
    return join_attempt(fs_, clock_, path_, place);
  }

  Result<void> abandon(const RankPlace& place, const Error& error) override {
    return abandon_unjoined(fs_, clock_, path_, place, error);
  }

  Result<Snapshot> snapshot() override { return take_snapshot(fs_, path_); }

  Result<std::vector<SeenAttempt>> look() override { return look_at_attempts(fs_, path_); }

  // One open directory: a rename of it changes nothing for who reads from it.
  Result<std::shared_ptr<storage::Store>> open_below(const std::string& directory) override {
    CAIRN_TRY_ASSIGN(auto store, storage::open_local_store(fs_, path_.below(directory)));
    return std::shared_ptr<storage::Store>(std::move(store));
  }

 private:
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
