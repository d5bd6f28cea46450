// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/verdict.h"

#include <gtest/gtest.h>

namespace cairn::coord {
namespace {

TEST(Verdict, NamesRanksAsRanges) {
  const std::vector<std::pair<std::vector<int>, std::string>> rows = {
      {{3}, "rank 3"},
      {{0, 1, 2, 7}, "ranks 0-2, 7"},
      {{1, 3, 4}, "ranks 1, 3-4"},
      {{0, 2, 4, 6, 8, 10, 12, 14}, "ranks 0, 2, 4, 6, 8, 10, 12, 14"},
      {{0, 2, 4, 6, 8, 10, 12, 14, 16, 17}, "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 2 more"},
  };
  for (const auto& [ranks, text] : rows) EXPECT_EQ(name_ranks(ranks), text);
}

TEST(Verdict, SaysWhoIsLateAndWhatToDo) {
  const Message call{.operation = Operation::kGather, .phase = "save 7"};
  EXPECT_EQ(late_text(std::vector{2}, call, "load", "the deadline of rank 1"),
            "rank 2 did not come to gather 'save 7' before the deadline of rank 1: last seen in "
            "'load'; look at what became of it, or wait longer");
  EXPECT_EQ(late_text(std::vector{1, 2}, call, "", "the deadline"),
            "ranks 1-2 did not come to gather 'save 7' before the deadline: not seen in this job "
            "before; look at what became of them, or wait longer");
}

TEST(Verdict, EachOutcomeIsAnErrorOfItsOwn) {
  EXPECT_EQ(error_of({.outcome = CallStatus::kLate}).reason(), "coord/late-ranks");
  EXPECT_EQ(error_of({.outcome = CallStatus::kMismatch}).reason(), "coord/phase-mismatch");
  EXPECT_EQ(error_of({.outcome = CallStatus::kFailed}).reason(), "coord/rank-failed");
  EXPECT_EQ(error_of({.outcome = CallStatus::kFailed}).code(), Code::kCancelled);
}

}  // namespace
}  // namespace cairn::coord
