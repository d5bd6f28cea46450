// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/look_at_attempts.h"

#include <gtest/gtest.h>

#include "cairn/commit/posix/attempt_files.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/commit/posix/file_attempt.h"
#include "cairn/commit/posix/file_rank_board.h"
#include "cairn/commit/rank_files.h"
#include "cairn/manifest/names.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;

class SeenAttempts : public ::testing::Test {
 protected:
  std::unique_ptr<AttemptRank> join(int rank) {
    return must(join_attempt(fs_, clock_, testing::local(dir_.path()),
                             {.attempt = attempt_->id(), .rank = rank, .ranks = 4}));
  }
  SeenAttempt look() {
    const auto attempts = must(look_at_attempts(fs_, testing::local(dir_.path())));
    EXPECT_EQ(attempts.size(), 1u);
    return attempts.at(0);
  }
  void put(const std::string& file, const std::string& text) {
    must(dest_.write_synced(name_ + "/" + file, text));
  }
  void claim_ranks(int ranks) {
    AttemptFile file = must(parse_attempt_file(
        must(dest_.read(name_ + "/" + std::string(kAttemptFile), kMaxAttemptFileBytes)).value()));
    file.ranks = ranks;
    put(std::string(kAttemptFile), must(dump_attempt_file(file)));
  }

  testing::TempDir dir_;
  testing::ManualClock clock_;
  storage::FileSystem& fs_ = storage::posix_file_system();
  std::unique_ptr<Attempt> attempt_ =
      must(begin_attempt(fs_, clock_, testing::local(dir_.path()), {.ranks = 4}));
  const Directory dest_ = must(Directory::open(fs_, testing::local(dir_.path()), false));
  const std::string name_ = std::string(kAttemptPrefix) + attempt_->id();
};

TEST_F(SeenAttempts, EachRankIsSeenAsItIs) {
  const auto writing = join(0);
  writing->enter("writing");
  writing->count(5, 9);
  auto told = join(1);
  must(told->report(kWrittenStage, {.rank = 1, .failure = {}, .sums = {}}));
  told.reset();
  RankReport failed{.rank = 2, .failure = {}, .sums = {}};
  failed.failure = Error(Code::kPermissionDenied, "fs/read-only", "ro").in("leaf w");
  const auto gave_up = join(2);
  must(gave_up->report(kWrittenStage, failed));
  const SeenAttempt seen = look();
  EXPECT_EQ(seen.view.state, AttemptState::kAlive);
  ASSERT_EQ(seen.ranks.size(), 4u);
  EXPECT_EQ(seen.ranks[0].phase, "writing");
  EXPECT_EQ(seen.ranks[0].done, 5u);
  EXPECT_EQ(seen.ranks[0].total, 9u);
  EXPECT_EQ(seen.ranks[0].since, "2026-01-01T00:00:00.000000+00:00");
  EXPECT_GT(seen.ranks[0].process, 0);
  EXPECT_EQ(seen.ranks[0].alive, true);
  EXPECT_FALSE(seen.ranks[0].reported);
  EXPECT_TRUE(seen.ranks[1].reported);
  EXPECT_EQ(seen.ranks[1].alive, false);
  EXPECT_EQ(seen.ranks[2].failure, "leaf w: ro [fs/read-only]");
  EXPECT_FALSE(seen.ranks[2].reported);
  EXPECT_EQ(seen.ranks[3].rank, 3);
  EXPECT_EQ(seen.ranks[3].phase, "");
  EXPECT_EQ(seen.ranks[3].alive, std::nullopt);
}

TEST_F(SeenAttempts, AnAbandonedOneSaysWhy) {
  const auto first = join(0);
  EXPECT_FALSE(first->abandon(Error(Code::kCancelled, "ranks/died", "rank 3 died")));
  EXPECT_EQ(look().view.state, AttemptState::kAbandoned);
  EXPECT_EQ(look().failure, "rank 3 died");
}

TEST_F(SeenAttempts, WhatIsDamagedCountsAsNotCome) {
  put(phase_file(0), R"({"phase":"wri)");
  put(report_file(1, kFailedStage), "{");
  put(phase_file(7), R"({"phase":"failed: no room","boot_id":"elsewhere"})");
  put("ranks/x.phase", "{}");
  put("ranks/-3.phase", "{}");
  const auto ranks = look().ranks;
  ASSERT_EQ(ranks.size(), 5u);
  EXPECT_EQ(ranks[0].phase, "");
  EXPECT_EQ(ranks[1].failure, "its error cannot be read");
  EXPECT_EQ(ranks[4].rank, 7);
  EXPECT_EQ(ranks[4].failure, "no room");
}

TEST_F(SeenAttempts, ANumberOfRanksThatCannotBeIsNotBelieved) {
  const auto only = join(3);
  for (const int ranks : {2'000'000'000, -5}) {
    claim_ranks(ranks);
    EXPECT_EQ(look().ranks.size(), 1u);
  }
  claim_ranks(2);
  EXPECT_EQ(look().ranks.size(), 3u);
}

}  // namespace
}  // namespace cairn
