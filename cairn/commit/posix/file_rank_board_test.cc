// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/file_rank_board.h"

#include <cerrno>
#include <numeric>

#include <gtest/gtest.h>

#include "cairn/commit/posix/attempt_files.h"
#include "cairn/commit/posix/file_attempt.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;

/// Ranks that do one thing after the other, so that nobody waits, and what each does is counted.
class Job {
 public:
  explicit Job(int ranks) : counts_(static_cast<std::size_t>(ranks)), all_(counts_.size()) {
    for (std::size_t& count : counts_) {
      file_systems_.push_back(
          testing::interpose(storage::posix_file_system(), [&count](std::size_t) { ++count; }));
    }
    attempt_ = must(
        begin_attempt(*file_systems_[0], clock_, testing::local(dir_ / "c"), {.ranks = ranks}));
  }

  AttemptRank& join(std::size_t rank) {
    all_[rank] = must(join_attempt(*file_systems_[rank], clock_, testing::local(dir_ / "c"),
                                   {.attempt = attempt_->id(),
                                    .rank = static_cast<int>(rank),
                                    .ranks = static_cast<int>(all_.size())}));
    return *all_[rank];
  }
  AttemptRank& rank(std::size_t rank) { return *all_[rank]; }
  Deadline in_a_minute() const { return Deadline::in(std::chrono::minutes(1), clock_); }
  void die(std::size_t rank) { all_[rank].reset(); }

  Result<void> wait_for_all(std::chrono::seconds timeout) {
    std::vector<int> from(all_.size());
    std::iota(from.begin(), from.end(), 0);
    return all_[0]->wait_reports("written", from, Deadline::in(timeout, clock_),
                                 [](const RankReport&) { return Result<void>(); });
  }
  Attempt& attempt() { return *attempt_; }
  Clock::Mono now() const { return clock_.monotonic(); }
  std::size_t operations(std::size_t rank) const { return counts_[rank]; }

 private:
  testing::TempDir dir_;
  testing::ManualClock clock_;
  std::vector<std::size_t> counts_;
  std::vector<std::unique_ptr<storage::FileSystem>> file_systems_;
  std::unique_ptr<Attempt> attempt_;
  std::vector<std::unique_ptr<AttemptRank>> all_;
};

struct Operations {
  std::size_t first;
  std::size_t last;
};

Operations operations_of_a_save(std::size_t ranks) {
  Job job(static_cast<int>(ranks));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    AttemptRank& me = job.join(rank);
    RankReport report;
    report.rank = static_cast<int>(rank);
    must(me.report("written", report));
  }
  must(job.wait_for_all(std::chrono::seconds(1)));
  must(job.attempt().commit({}));
  return {job.operations(0), job.operations(ranks - 1)};
}

TEST(AttemptRank, OnlyRankZeroHasMoreToDoWhenThereAreMoreRanks) {
  const Operations two = operations_of_a_save(2);
  const Operations eight = operations_of_a_save(8);
  const Operations thirty_two = operations_of_a_save(32);
  EXPECT_EQ(two.last, eight.last);
  EXPECT_EQ(two.last, thirty_two.last);
  // Of each rank: its report is read, it and the file of its phase are removed.
  const std::size_t each = (eight.first - two.first) / 6;
  EXPECT_LE(each, 7u);
  EXPECT_EQ(thirty_two.first - two.first, 30 * each);
}

TEST(AttemptRank, AFailureIsHeardAtEveryStage) {
  Job job(3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    RankReport report;
    report.rank = static_cast<int>(rank);
    must(job.join(rank).report("written", report));
  }
  must(job.wait_for_all(std::chrono::seconds(1)));
  RankReport failed;
  failed.rank = 2;
  failed.failure = Error(Code::kResourceExhausted, "storage/no-space", "full").in("leaf w");
  must(job.rank(2).report("assembled", failed));
  const auto waited = job.rank(0).wait_reports("assembled", {1, 2}, job.in_a_minute(),
                                               [](const RankReport&) { return Result<void>(); });
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().reason(), "storage/no-space");
  EXPECT_EQ(waited.error().to_string(), "rank 2: leaf w: full");
  EXPECT_FALSE(job.rank(0).abandon(waited.error()));
  const auto heard = job.rank(1).wait_leader("gathered", job.in_a_minute());
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().to_string(), "rank 2: leaf w: full");
}

TEST(AttemptRank, WhoWaitsForRankZeroAsksForNoReportButItsOwn) {
  const auto operations = [](std::size_t ranks) {
    Job job(static_cast<int>(ranks));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      RankReport report;
      report.rank = static_cast<int>(rank);
      must(job.join(rank).report("written", report));
    }
    const std::size_t before = job.operations(1);
    EXPECT_EQ(testing::reason(job.rank(1).wait_leader("gathered", job.in_a_minute())),
              "ranks/late");
    return job.operations(1) - before;
  };
  EXPECT_EQ(operations(2), operations(32));
  Job job(2);
  job.join(1);
  must(job.join(0).report("gathered", {}));
  const std::size_t before = job.operations(1);
  must(job.rank(1).wait_leader("gathered", job.in_a_minute()));
  EXPECT_EQ(job.operations(1) - before, 1u);
}

TEST(AttemptRank, AnAbandonmentForWantOfSpaceDoesNotTouchWhatIsDecided) {
  testing::LossyFileSystem disk;
  testing::ManualClock clock;
  const auto attempt = must(begin_attempt(disk, clock, testing::local("/c"), {.ranks = 2}));
  const auto me =
      must(join_attempt(disk, clock, testing::local("/c"), {.attempt = attempt->id(), .ranks = 2}));
  must(me->data().put("x", as_bytes("data")));
  Outcome outcome;
  outcome.commit = true;
  const std::string name = "/c/.cairn-" + attempt->id() + "/outcome.json";
  const auto file = must(disk.open(
      nullptr, name, {.access = storage::OpenOptions::Access::kReadWrite, .create = true}));
  must(file->write_at(0, as_bytes(must(dump_outcome(outcome)))));
  disk.fail_at(disk.operations().size(), ENOSPC);
  EXPECT_TRUE(me->abandon(Error(Code::kResourceExhausted, "storage/no-space", "full")));
  EXPECT_TRUE(me->data().stat("x"));
}

TEST(AttemptRank, AnAbandonedAttemptTearsNothingAndStaysWhileARankLivesInIt) {
  testing::TempDir dir;
  testing::ManualClock clock;
  storage::FileSystem& fs = storage::posix_file_system();
  auto attempt = must(begin_attempt(fs, clock, testing::local(dir.path()), {.ranks = 2}));
  const std::string id = attempt->id();
  auto slow = must(
      join_attempt(fs, clock, testing::local(dir.path()), {.attempt = id, .rank = 1, .ranks = 2}));
  const Error full = Error(Code::kResourceExhausted, "storage/no-space", "full").in("rank 0");
  EXPECT_FALSE(
      must(join_attempt(fs, clock, testing::local(dir.path()), {.attempt = id, .ranks = 2}))
          ->abandon(full));
  EXPECT_TRUE(must(recover(fs, clock, testing::local(dir.path()))).removed.empty())
      << "its writer lives";
  attempt.reset();
  const Snapshot left = must(take_snapshot(fs, testing::local(dir.path())));
  EXPECT_FALSE(left.torn);
  EXPECT_TRUE(left.attempts.empty());
  EXPECT_TRUE(must(recover(fs, clock, testing::local(dir.path()))).removed.empty())
      << "rank 1 lives";
  const auto outcome = slow->wait_outcome(Deadline::in(std::chrono::minutes(1), clock));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().to_string(), "rank 0: full");
  slow.reset();
  EXPECT_EQ(must(recover(fs, clock, testing::local(dir.path()))).removed,
            std::vector<std::string>{id});
}

TEST(AttemptRank, LooksAfterManyInTurnAndFindsTheOneThatDied) {
  Job job(4000);
  job.join(0);
  job.join(3500);
  job.die(3500);
  const auto start = job.now();
  const auto waited = job.wait_for_all(std::chrono::hours(1));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().reason(), "ranks/died");
  EXPECT_NE(waited.error().to_string().find("rank 3500"), std::string::npos);
  EXPECT_LT(job.now() - start, std::chrono::seconds(30));
}

TEST(AttemptRank, AFollowerAsksTheStorageLittleWhileItWaits) {
  const auto operations = [](std::chrono::seconds patience) {
    Job job(2);
    AttemptRank& follower = job.join(1);
    const std::size_t before = job.operations(1);
    const auto waited = follower.wait_outcome(Deadline::at(job.now() + patience));
    EXPECT_EQ(testing::reason(waited), "ranks/late");
    return job.operations(1) - before;
  };
  // Ten times a second: is there an outcome, is there an attempt; twice: is its lock held.
  const std::size_t second = 10 * 2 + 2;
  EXPECT_LE(operations(std::chrono::seconds(200)) - operations(std::chrono::seconds(100)),
            100 * second);
}

TEST(AttemptRank, LooksAfterABoundedNumberAtATime) {
  const auto operations = [](int ranks) {
    Job job(ranks);
    job.join(0);
    const auto waited = job.wait_for_all(std::chrono::seconds(60));
    EXPECT_EQ(testing::reason(waited), "ranks/late");
    // At the end all are looked at.
    return job.operations(0) - static_cast<std::size_t>(ranks);
  };
  EXPECT_LE(operations(4000), operations(1100));
}

}  // namespace
}  // namespace cairn
