// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/roll_call.h"

#include <set>

#include <gtest/gtest.h>

#include "cairn/base/bytes.h"

namespace cairn::coord {
namespace {

Message note(const std::string& phase, const std::string& payload = "") {
  return {
      .call = 5, .operation = Operation::kGather, .phase = phase, .payload = Buffer::own(payload)};
}

TEST(RollCall, OfOneIsCompleteAtOnce) {
  RollCall roll(note("p", "mine"), 1, "");
  EXPECT_TRUE(roll.complete());
  EXPECT_EQ(roll.conclude().outcome, CallStatus::kDone);
  EXPECT_EQ(as_text(std::move(roll).payloads()[0].bytes()), "mine");
}

TEST(RollCall, CollectsPayloadsByRank) {
  RollCall roll(note("p", "zero"), 3, "");
  EXPECT_FALSE(roll.take({2, note("p", "two")}));
  EXPECT_FALSE(roll.complete());
  EXPECT_FALSE(roll.take({2, note("p", "two, again")}));
  EXPECT_FALSE(roll.take({1, note("p", "one")}));
  ASSERT_TRUE(roll.complete());
  const Message verdict = roll.conclude();
  EXPECT_EQ(verdict.call, 5);
  EXPECT_TRUE(verdict.payload.empty()) << "a gather sends nothing back";
  const auto payloads = std::move(roll).payloads();
  EXPECT_EQ(as_text(payloads[1].bytes()), "one");
  EXPECT_EQ(as_text(payloads[2].bytes()), "two");
}

TEST(RollCall, NamesThoseWhoDidNotComeInOrder) {
  RollCall roll(note("p"), 40, "before");
  for (int rank = 1; rank < 40; rank += 2) {
    EXPECT_FALSE(roll.next_to_look_at().empty());
    EXPECT_FALSE(roll.take({rank, note("p")}));
  }
  const Message verdict = roll.conclude();
  EXPECT_EQ(verdict.outcome, CallStatus::kLate);
  EXPECT_EQ(verdict.text.find("ranks 2, 4, 6, 8, 10, 12, 14, 16 and 11 more did not come"), 0)
      << verdict.text;
}

TEST(RollCall, LooksAtEverybodyInTurnWithoutLookingAtAllEachTime) {
  RollCall roll(note("p"), 1000, "");
  std::set<int> seen;
  for (int look = 0; look < 70; ++look) {
    const auto ranks = roll.next_to_look_at();
    EXPECT_LE(ranks.size(), 16);
    seen.insert(ranks.begin(), ranks.end());
  }
  EXPECT_EQ(seen.size(), 999);
}

TEST(RollCall, ARankWhoseDeadlinePassedMakesItUrgentAndStillCounts) {
  Message late = note("p", "one");
  late.outcome = CallStatus::kLate;
  RollCall roll(note("p"), 3, "before");
  EXPECT_FALSE(roll.take({1, late}));
  EXPECT_TRUE(roll.urgent());
  EXPECT_EQ(roll.conclude().text.find("rank 2 did not come to gather 'p' before the deadline of "
                                      "rank 1: last seen in 'before'"),
            0);
  EXPECT_FALSE(roll.take({2, note("p")}));
  EXPECT_EQ(roll.conclude().outcome, CallStatus::kDone);
  EXPECT_EQ(as_text(std::move(roll).payloads()[1].bytes()), "one");
}

TEST(RollCall, EndsAtOnceWhenSomebodyFailsOrDisagrees) {
  RollCall roll(note("p"), 4, "");
  Message failed = note("q");
  failed.outcome = CallStatus::kFailed;
  failed.text = "no space left";
  EXPECT_EQ(roll.take({3, failed})->text, "rank 3 failed: no space left");
  EXPECT_EQ(roll.take({2, note("q")})->outcome, CallStatus::kMismatch);
  Message other = note("p");
  other.operation = Operation::kBarrier;
  EXPECT_EQ(roll.take({2, other})->text,
            "rank 0 is in gather 'p', rank 2 in barrier 'p'; all ranks must make the same calls");
}

TEST(RollCall, SendsThePayloadOfABroadcast) {
  Message call = note("p", "news");
  call.operation = Operation::kBroadcast;
  RollCall roll(call, 1, "");
  EXPECT_EQ(as_text(roll.conclude().payload.bytes()), "news");
}

}  // namespace
}  // namespace cairn::coord
