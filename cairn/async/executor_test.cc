// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/executor.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cairn {
namespace {

// Keeps tasks until the end: the latest that any helper can start.
class LateExecutor final : public Executor {
 public:
  void add(Task task) override { tasks_.push_back(std::move(task)); }
  std::size_t width() const override { return 4; }
  std::size_t run_all() {
    for (Task& task : tasks_) task();
    return tasks_.size();
  }

 private:
  std::vector<Task> tasks_;
};

Error failure(std::size_t index) {
  return {Code::kUnavailable, "executor/failed", std::to_string(index)};
}

TEST(Task, HoldsWhatCanOnlyBeMoved) {
  int seen = 0;
  Task task([&seen, value = std::make_unique<int>(7)] { seen = *value; });
  Task moved = std::move(task);
  EXPECT_FALSE(task);  // NOLINT(bugprone-use-after-move)
  ASSERT_TRUE(moved);
  moved();
  EXPECT_EQ(seen, 7);
}

TEST(ThreadPool, RunsAllThatWasAddedBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    const auto pool = make_thread_pool(4);
    for (int i = 0; i < 1000; ++i) {
      pool->add([&] {
        ++ran;
        pool->add([&] { ++ran; });
      });
    }
  }
  EXPECT_EQ(ran, 2000);
}

TEST(ThreadPool, TakesTasksFromManyThreads) {
  std::atomic<int> ran = 0;
  {
    const auto pool = make_thread_pool(3);
    const auto producers = make_thread_pool(4);
    for (int i = 0; i < 400; ++i) {
      producers->add([&] {
        for (int j = 0; j < 10; ++j) pool->add([&] { ++ran; });
      });
    }
    EXPECT_TRUE(for_each_index(*producers, 4, [](std::size_t) { return Result<void>(); }));
  }
  EXPECT_EQ(ran, 4000);
}

TEST(ThreadPool, RunsAsManyTasksAtOnceAsItIsWide) {
  for (const std::size_t width : {1u, 2u, 5u}) {
    const auto pool = make_thread_pool(width);
    EXPECT_EQ(pool->width(), width);
    std::latch all_there(static_cast<std::ptrdiff_t>(width));
    for (std::size_t i = 0; i < width; ++i) pool->add([&] { all_there.arrive_and_wait(); });
    all_there.wait();
  }
}

TEST(ThreadPool, HasAtLeastOneThread) {
  const auto pool = make_thread_pool(0);
  EXPECT_EQ(pool->width(), 1u);
  std::latch ran(1);
  pool->add([&] { ran.count_down(); });
  ran.wait();
}

TEST(ThreadPool, SurvivesATaskThatThrows) {
  std::atomic<int> ran = 0;
  {
    const auto pool = make_thread_pool(1);
    pool->add([] { throw std::runtime_error("dropped"); });
    pool->add([&] { ++ran; });
  }
  EXPECT_EQ(ran, 1);
}

TEST(InlineExecutor, RunsOnTheThreadOfItsCaller) {
  const auto executor = make_inline_executor();
  std::thread::id ran_on;
  executor->add([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(executor->width(), 1u);
  executor->add([] { throw std::runtime_error("dropped"); });
}

TEST(ForEachIndex, CallsEveryIndexOnceAndKeepsToTheWidth) {
  for (const std::size_t width : {1u, 2u, 3u, 8u}) {
    const auto pool = make_thread_pool(width);
    for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 8u, 9u, 500u}) {
      std::vector<std::atomic<int>> calls(count);
      std::atomic<std::size_t> running = 0;
      std::atomic<bool> too_many = false;
      const Result<void> done = for_each_index(*pool, count, [&](std::size_t i) {
        if (++running > width) too_many = true;
        ++calls[i];
        --running;
        return Result<void>();
      });
      EXPECT_TRUE(done);
      EXPECT_FALSE(too_many);
      EXPECT_TRUE(std::ranges::all_of(calls, [](int n) { return n == 1; }))
          << width << " " << count;
    }
  }
}

TEST(ForEachIndex, UsesAllThreadsAndTheCallersOwn) {
  const auto pool = make_thread_pool(4);
  std::latch all_there(4);
  std::atomic<bool> caller_took_part = false;
  const auto caller = std::this_thread::get_id();
  EXPECT_TRUE(for_each_index(*pool, 4, [&](std::size_t) {
    if (std::this_thread::get_id() == caller) caller_took_part = true;
    all_there.arrive_and_wait();
    return Result<void>();
  }));
  EXPECT_TRUE(caller_took_part);
}

TEST(ForEachIndex, NestsWithoutDeadlock) {
  for (const std::size_t width : {1u, 2u, 4u}) {
    const auto pool = make_thread_pool(width);
    std::atomic<int> leaves = 0;
    const auto leaf = [&](std::size_t) {
      ++leaves;
      return Result<void>();
    };
    const auto middle = [&](std::size_t) { return for_each_index(*pool, 5, leaf); };
    const auto top = [&](std::size_t) { return for_each_index(*pool, 5, middle); };
    EXPECT_TRUE(for_each_index(*pool, 20, top));
    EXPECT_EQ(leaves, 500);
  }
}

TEST(ForEachIndex, GetsThroughWhenEveryThreadOfThePoolWaitsInOne) {
  constexpr int kThreads = 3;
  std::atomic<int> calls = 0;
  {
    const auto pool = make_thread_pool(kThreads);
    std::latch all_busy(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      pool->add([&] {
        all_busy.arrive_and_wait();
        for_each_index(*pool, 10, [&](std::size_t) {
          ++calls;
          return Result<void>();
        }).ignore_error("the work cannot fail");
      });
    }
  }
  EXPECT_EQ(calls, 10 * kThreads);
}

TEST(ForEachIndex, LeavesNothingForHelpersThatComeLate) {
  LateExecutor late;
  {
    auto calls = std::make_unique<int>(0);
    EXPECT_TRUE(for_each_index(late, 10, [&](std::size_t) {
      ++*calls;
      return Result<void>();
    }));
    EXPECT_EQ(*calls, 10);
  }
  EXPECT_EQ(late.run_all(), 3u);  // they would touch what is gone
}

TEST(ForEachIndex, BeginsNothingAfterAFailure) {
  const auto executor = make_inline_executor();
  std::vector<std::size_t> ran;
  const Result<void> done = for_each_index(*executor, 10, [&](std::size_t i) -> Result<void> {
    ran.push_back(i);
    if (i == 3) return failure(i);
    return {};
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "3");
  EXPECT_EQ(ran, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(ForEachIndex, ReturnsTheErrorOfTheLowestIndexHoweverLateItComes) {
  constexpr std::size_t kWidth = 4;
  const auto pool = make_thread_pool(kWidth);
  std::latch all_there(kWidth);
  std::latch others_failed(kWidth - 1);
  std::atomic<std::size_t> ran = 0;
  const Result<void> done = for_each_index(*pool, 1000, [&](std::size_t i) -> Result<void> {
    ++ran;
    all_there.arrive_and_wait();
    if (i == 0) others_failed.wait();
    if (i != 0) others_failed.count_down();
    return failure(i);
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "0");
  EXPECT_EQ(ran, kWidth);
}

TEST(ForEachIndex, TurnsAnExceptionIntoAnError) {
  for (const std::size_t width : {1u, 3u}) {
    const auto pool = make_thread_pool(width);
    const Result<void> done = for_each_index(
        *pool, 20, [](std::size_t) -> Result<void> { throw std::runtime_error("surprise"); });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().reason(), "async/exception");
    EXPECT_EQ(done.error().code(), Code::kInternal);
  }
}

TEST(ForEachIndex, SaysThatThereWasNoMemory) {
  const auto pool = make_thread_pool(2);
  const Result<void> done =
      for_each_index(*pool, 20, [](std::size_t) -> Result<void> { throw std::bad_alloc(); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason(), "base/out-of-memory");
  EXPECT_EQ(done.error().code(), Code::kResourceExhausted);
}

TEST(ForEachIndex, StaysWholeUnderManyCallersAndFailures) {
  const auto pool = make_thread_pool(4);
  const Result<void> all = for_each_index(*pool, 200, [&](std::size_t outer) -> Result<void> {
    std::atomic<std::size_t> ran = 0;
    const std::size_t bad = outer % 40;
    const Result<void> inner = for_each_index(*pool, 30, [&](std::size_t i) -> Result<void> {
      ++ran;
      if (i == bad) return failure(i);
      return {};
    });
    const bool as_expected =
        bad < 30 ? !inner && inner.error().message() == std::to_string(bad) && ran > bad
                 : inner && ran == 30;
    if (!as_expected) return failure(outer);
    return {};
  });
  EXPECT_TRUE(all);
}

}  // namespace
}  // namespace cairn
