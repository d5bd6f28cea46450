// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/progress_bar.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "cairn/base/bytes.h"
#include "cairn/testing/manual_clock.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ProgressBar, SaysBytesRateAndTimeLeftInLines) {
  testing::ManualClock clock;
  ProgressBar bar("save", {.terminal = false, .lines = 4}, clock);
  EXPECT_EQ(bar.update(0, 8 * kMiB), "save ................   0%  0 B of 8.0 MiB\n");
  clock.advance(seconds(1));
  EXPECT_EQ(bar.update(2 * kMiB, 8 * kMiB),
            "save ####............  25%  2.0 MiB of 8.0 MiB  2.0 MiB/s  3.0 s left\n");
  EXPECT_EQ(bar.update(3 * kMiB, 8 * kMiB), "");
  clock.advance(seconds(3));
  EXPECT_EQ(bar.update(8 * kMiB, 8 * kMiB),
            "save ################ 100%  8.0 MiB of 8.0 MiB  2.0 MiB/s  4.0 s\n");
  EXPECT_EQ(bar.update(8 * kMiB, 8 * kMiB), "");
}

TEST(ProgressBar, GivesAtMostAsManyLinesAsAsked) {
  for (const std::uint64_t lines : {1U, 4U, 10U}) {
    testing::ManualClock clock;
    ProgressBar bar("save", {.terminal = false, .lines = lines}, clock);
    std::uint64_t given = 0;
    for (std::uint64_t done = 0; done <= 1000; ++done) given += bar.update(done, 1000).size() > 0;
    EXPECT_EQ(given, lines + 1);
  }
}

TEST(ProgressBar, DrawsOverItselfOnATerminalAndNotTooOften) {
  testing::ManualClock clock;
  ProgressBar bar("save", {.terminal = true, .lines = 10}, clock);
  const std::string first = bar.update(0, 100);
  EXPECT_TRUE(first.starts_with("\rsave \u2591") && first.ends_with("0 B of 100 B\x1b[K")) << first;
  clock.advance(milliseconds(79));
  EXPECT_EQ(bar.update(50, 100), "");
  clock.advance(milliseconds(1));
  const std::string half = bar.update(50, 100);
  EXPECT_NE(half.find("\u2588\u2591"), std::string::npos) << half;
  EXPECT_NE(half.find(" 50%"), std::string::npos) << half;
  EXPECT_TRUE(bar.update(100, 100).ends_with("\x1b[K\n"));
  EXPECT_EQ(bar.update(100, 100), "");
}

TEST(ProgressBar, SpeaksOfWaitsInTheUnitThatFits) {
  const auto left = [](milliseconds passed, std::uint64_t total) {
    testing::ManualClock clock;
    ProgressBar bar("load", {}, clock);
    clock.advance(passed);
    return bar.update(1, total);
  };
  EXPECT_TRUE(left(milliseconds(10), 10).ends_with("  90 ms left\n"));
  EXPECT_TRUE(left(seconds(10), 10).ends_with("  90 s left\n"));
  EXPECT_TRUE(left(seconds(60), 11).ends_with("  10 min left\n"));
  EXPECT_TRUE(left(seconds(3600), 6).ends_with("  5.0 h left\n"));
}

TEST(ProgressBar, FitsIntoEightyColumns) {
  testing::ManualClock clock;
  ProgressBar bar("nine long", {}, clock);
  clock.advance(seconds(7100));
  const std::string line = bar.update(1023 * kGiB / 2, 1023 * kGiB);
  EXPECT_TRUE(line.ends_with(" min left\n"));
  EXPECT_LE(line.size(), 80U) << line;
}

TEST(ProgressBar, IsDoneAtOnceWhereThereIsNothingToDo) {
  testing::ManualClock clock;
  ProgressBar bar("save", {}, clock);
  EXPECT_EQ(bar.update(0, 0), "save ################ 100%  0 B of 0 B\n");
  EXPECT_EQ(bar.update(0, 0), "");
}

}  // namespace
}  // namespace cairn
