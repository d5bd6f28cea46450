// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/background.h"

#include <atomic>
#include <cstdlib>
#include <latch>
#include <memory>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cairn {
namespace {

TEST(Background, RunsEachPieceOnAThreadOfItsOwn) {
  std::latch both(2);  // neither passes before the other has come
  for (int i = 0; i < 2; ++i) {
    run_in_background([&] { both.arrive_and_wait(); });
  }
  wait_for_background();
}

TEST(Background, HasLetGoOfEverythingWhenItIsWaitedFor) {
  for (int round = 0; round < 50; ++round) {
    const auto owned = std::make_shared<int>(1);
    run_in_background([owned] {});
    wait_for_background();
    EXPECT_EQ(owned.use_count(), 1);
  }
}

TEST(Background, IsWaitedForNoLongerThanTheDeadline) {
  std::latch go(1);
  run_in_background([&] { go.wait(); });
  EXPECT_FALSE(wait_for_background_until(Deadline::in(std::chrono::nanoseconds(0))));
  EXPECT_FALSE(wait_for_background_until(Deadline::in(std::chrono::milliseconds(1))));
  go.count_down();
  EXPECT_TRUE(wait_for_background_until(Deadline::never()));
  EXPECT_TRUE(wait_for_background_until(Deadline::in(std::chrono::nanoseconds(0))));
}

TEST(Background, KnowsItsThreads) {
  std::atomic<bool> there = false;
  run_in_background([&] { there = is_background_thread(); });
  wait_for_background();
  EXPECT_TRUE(there);
  EXPECT_FALSE(is_background_thread());
}

TEST(Background, WorkAsideIsItsCallers) {
  std::atomic<bool> there = true;
  run_aside([&] { there = is_background_thread(); });
  wait_for_background();
  EXPECT_FALSE(there);
}

TEST(Background, TheChildOfAForkKnowsNothingOfItsParentsThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not follow a process with threads into its child";
#endif
  std::latch go(1);
  for (int i = 0; i < 2; ++i) run_in_background([&] { go.wait(); });
  const pid_t child = fork();
  if (child == 0) {
    wait_for_background();
    std::atomic<bool> ran = false;
    run_in_background([&] { ran = true; });
    wait_for_background();
    _exit(ran ? 0 : 1);
  }
  go.count_down();
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  wait_for_background();
}

TEST(Background, OutlivesAnExceptionOfItsWork) {
  run_in_background([] { throw 1; });
  wait_for_background();
}

TEST(Background, IsWaitedForByTheEndOfTheProcess) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(ends[0]);
    run_in_background([&] {
      // Long after main would have returned.
      for (int i = 0; i < 1000; ++i) sched_yield();
      const ssize_t written = write(ends[1], "x", 1);
      if (written != 1) abort();
    });
    std::exit(0);
  }
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cairn
