// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/in_process.h"

#include <latch>

#include <gtest/gtest.h>

#include "cairn/testing/coordinator_suite.h"
#include "cairn/testing/must.h"

namespace cairn::coord {
namespace {

using cairn::testing::must;
using cairn::testing::reason;
using cairn::testing::register_coordinator_suite;
using cairn::testing::run_ranks;

auto make(int count) { return must(make_in_process_coordinators(count)); }

const bool kRegistered = register_coordinator_suite("InProcess", 1, &make) &&
                         register_coordinator_suite("InProcess", 2, &make) &&
                         register_coordinator_suite("InProcess", 5, &make);

TEST(InProcess, RefusesCountsThatCannotBe) {
  for (const int count : {-1, 0, kMaxRanks + 1}) {
    EXPECT_EQ(reason(make_in_process_coordinators(count)), "coord/bad-rank") << count;
  }
}

TEST(InProcess, ALateRankLearnsThatItWasLate) {
  std::latch over(1);
  run_ranks(make(2), [&](Coordinator& me) {
    if (me.rank() == 1) over.wait();
    const auto result = me.barrier("save 100", Deadline::in(std::chrono::nanoseconds(0)));
    if (me.rank() == 0) over.count_down();
    ASSERT_EQ(reason(result), "coord/late-ranks");
    EXPECT_EQ(result.error().message().find("rank 1 did not come"), 0) << result.error().message();
  });
}

TEST(InProcess, ARankThatGaveUpEndsTheCallOfRank0AtOnce) {
  std::latch over(1);
  run_ranks(make(3), [&](Coordinator& me) {
    if (me.rank() == 0) over.wait();
    if (me.rank() == 1) return;
    const Deadline deadline =
        me.rank() == 0 ? Deadline::never() : Deadline::in(std::chrono::nanoseconds(0));
    const auto result = me.barrier("save 100", deadline);
    if (me.rank() == 2) over.count_down();
    ASSERT_EQ(reason(result), me.rank() == 0 ? "coord/rank-failed" : "coord/late-ranks");
    if (me.rank() == 0) {
      EXPECT_EQ(result.error().message(), "rank 2 failed: it gave up in barrier 'save 100'");
    }
  });
}

}  // namespace
}  // namespace cairn::coord
