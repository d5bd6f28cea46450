// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/run_status.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/commit/posix/file_rank_board.h"
#include "cairn/manifest/names.h"
#include "cairn/run/mark.h"
#include "cairn/run/save_request.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

namespace files = std::filesystem;
using std::chrono::seconds;
using testing::must;

void save_step(const std::string& base, std::int64_t step, Runtime& runtime) {
  testing::Random random(static_cast<std::uint64_t>(step));
  SaveOptions options{.step = step};
  options.chunk_bytes = 64;
  SaveInternals marked;
  marked.mark = dump_mark(make_mark(step, false, runtime.clock().wall()));
  const Tree tree = Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {64, 4})}});
  must(save_checkpoint({{"", tree}}, base + "/run-" + std::to_string(step), options, runtime,
                       &marked));
}

class Status : public ::testing::Test {
 protected:
  void save(std::int64_t step) { save_step(dir_.path(), step, runtime_); }
  RunStatus look() { return must(look_at_run(dir_.path(), runtime_)); }
  /// A save by two ranks, of which rank 0 has come.
  void begin(const std::string& name) {
    attempt_ = must(begin_attempt(*fs_, clock_, testing::local(dir_ / name), {.ranks = 2}));
    rank_ = must(join_attempt(*fs_, clock_, testing::local(dir_ / name),
                              {.attempt = attempt_->id(), .rank = 0, .ranks = 2}));
  }

  testing::TempDir dir_;
  testing::ManualClock clock_;
  std::size_t operations_ = 0;
  const std::unique_ptr<storage::FileSystem> fs_ =
      testing::interpose(storage::posix_file_system(), [this](std::size_t) { ++operations_; });
  Runtime runtime_{{.threads = 1, .file_system = fs_.get(), .clock = &clock_}};
  std::unique_ptr<Attempt> attempt_;
  std::unique_ptr<AttemptRank> rank_;
};

TEST_F(Status, OfAnEmptyDirectoryThereIsNothingToSay) {
  const RunStatus status = look();
  EXPECT_EQ(status.path, dir_.path());
  EXPECT_FALSE(status.owner || status.latest || status.request);
  EXPECT_EQ(status.checkpoints, 0u);
  EXPECT_TRUE(status.saves.empty());
  EXPECT_EQ(status.leftovers, 0u);
  EXPECT_EQ(status.bytes, 0u);
  EXPECT_GT(status.free_bytes, 0u);
  EXPECT_GE(status.disk_bytes, status.free_bytes);
  EXPECT_EQ(testing::reason(look_at_run(dir_ / "not-there", runtime_)), "fs/not-found");
}

TEST_F(Status, TheLatestIsTheNewestGoodOne) {
  for (const std::int64_t step : {10, 20, 30}) save(step);
  EXPECT_EQ(look().latest->step, 30);
  EXPECT_EQ(look().checkpoints, 3u);
  ASSERT_TRUE(files::remove(dir_ / "run-30/w/0.0"));
  const RunStatus status = look();
  EXPECT_EQ(status.latest->step, 20);
  EXPECT_EQ(status.latest->path, dir_ / "run-20");
  EXPECT_EQ(status.checkpoints, 3u);
}

TEST_F(Status, ASaveInFlightSaysWhatItsRanksDo) {
  save(10);
  begin("run-20");
  rank_->enter("writing");
  rank_->count(30, 100);
  const RunStatus status = look();
  ASSERT_EQ(status.saves.size(), 1u);
  const SaveStatus& save = status.saves.front();
  EXPECT_EQ(save.path, dir_ / "run-20");
  EXPECT_EQ(save.attempt.view.id, attempt_->id());
  EXPECT_EQ(save.attempt.view.state, AttemptState::kAlive);
  EXPECT_TRUE(save.in_flight());
  EXPECT_EQ(save.done(), 30u);
  EXPECT_EQ(save.total(), 100u);
  EXPECT_EQ(save.bytes_per_second, std::nullopt);
  ASSERT_EQ(save.attempt.ranks.size(), 2u);
  EXPECT_EQ(save.attempt.ranks[0].phase, "writing");
  EXPECT_EQ(save.attempt.ranks[0].alive, true);
  EXPECT_EQ(save.attempt.ranks[1].phase, "");
  EXPECT_EQ(status.leftovers, 0u);
  EXPECT_EQ(status.latest->step, 10);
}

TEST_F(Status, TwoLooksGiveARate) {
  begin("run-1");
  RunWatch watch(dir_.path(), runtime_);
  rank_->count(0, 1000);
  EXPECT_EQ(must(watch.look()).saves.at(0).bytes_per_second, std::nullopt);
  clock_.advance(seconds(2));
  rank_->count(500, 1000);
  EXPECT_EQ(must(watch.look()).saves.at(0).bytes_per_second, 250.0);
  clock_.advance(seconds(2));
  EXPECT_EQ(must(watch.look()).saves.at(0).bytes_per_second, 0.0);
}

TEST_F(Status, WhatIsLeftOfSavesIsCounted) {
  begin("run-1");
  const std::string name = std::string(kAttemptPrefix) + attempt_->id();
  // Nobody holds the lock on a copy.
  files::create_directory(dir_ / "run-2");
  files::copy(dir_ / "run-1/" + name, dir_ / "run-2/" + name, files::copy_options::recursive);
  files::create_directories(dir_ / "run-1/.cairn-trash/x");
  EXPECT_FALSE(rank_->abandon(Error(Code::kCancelled, "ranks/died", "rank 1 died")));
  const RunStatus status = look();
  ASSERT_EQ(status.saves.size(), 2u);
  EXPECT_EQ(status.saves[0].attempt.view.state, AttemptState::kAbandoned);
  EXPECT_EQ(status.saves[0].attempt.failure, "rank 1 died");
  EXPECT_EQ(status.saves[1].attempt.view.state, AttemptState::kDead);
  EXPECT_EQ(status.saves[1].attempt.ranks[0].alive, false);
  EXPECT_EQ(status.leftovers, 3u);
}

std::uint64_t bytes_on_disk(const std::string& path) {
  std::uint64_t bytes = 0;
  for (const auto& entry : files::recursive_directory_iterator(path))
    bytes += entry.is_regular_file() ? entry.file_size() : 0;
  return bytes;
}

TEST_F(Status, BytesAreThoseOfAllFilesAndCountedAgainOnlyWhereSomethingChanged) {
  for (const std::int64_t step : {1, 2, 3}) save(step);
  std::ofstream(dir_ / "notes.txt") << "mine";
  RunWatch watch(dir_.path(), runtime_);
  EXPECT_EQ(must(watch.look(RunWatch::Bytes::kLeaveOut)).bytes, std::nullopt);
  EXPECT_EQ(must(watch.look()).bytes, bytes_on_disk(dir_.path()));
  operations_ = 0;
  EXPECT_EQ(must(watch.look()).bytes, bytes_on_disk(dir_.path()));
  const std::size_t quick = operations_;
  operations_ = 0;
  look();
  EXPECT_GT(operations_, quick + 3 * 16) << "there are 16 chunks in each";
  begin("run-2");
  must(rank_->data().put("x", as_bytes("data")));
  EXPECT_EQ(must(watch.look()).bytes, bytes_on_disk(dir_.path()));
}

TEST_F(Status, ARequestAndTheOwnerAreSeen) {
  must(request_save(dir_.path(), "before the reboot", runtime_));
  const auto owner = must(take_run(dir_.path(), {.run_id = "r1"}, runtime_));
  const RunStatus status = look();
  EXPECT_EQ(status.request, "before the reboot");
  ASSERT_TRUE(status.owner);
  EXPECT_EQ(status.owner->file.run_id, "r1");
  EXPECT_TRUE(status.owner->alive);
}

TEST(StatusOfARun, IsFoundWithoutChangingAnything) {
  testing::LossyFileSystem disk;
  testing::ManualClock clock;
  Runtime runtime({.threads = 1, .file_system = &disk, .clock = &clock});
  must(disk.make_directory(nullptr, "/run"));
  save_step("/run", 1, runtime);
  const auto attempt = must(begin_attempt(disk, clock, testing::local("/run/run-2"), {}));
  const std::size_t before = disk.operations().size();
  EXPECT_EQ(must(look_at_run("/run", runtime)).saves.size(), 1u);
  const auto operations = disk.operations();
  ASSERT_GT(operations.size(), before);
  for (std::size_t n = before; n < operations.size(); ++n)
    EXPECT_FALSE(operations[n].changes) << operations[n].name << " " << operations[n].path;
}

}  // namespace
}  // namespace cairn
