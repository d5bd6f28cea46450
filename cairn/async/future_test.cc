// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/future.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cairn/async/executor.h"

namespace cairn {
namespace {

TEST(Future, GivesWhatThePromiseWasSetTo) {
  Promise<int> promise;
  const Future<int> future = promise.future();
  const Future<int> copy = future;
  EXPECT_FALSE(future.done());
  promise.set(7);
  EXPECT_TRUE(copy.done());
  EXPECT_EQ(*future.wait(), 7);
  EXPECT_EQ(*copy.wait(), 7) << "waiting does not use the result up";
}

TEST(Future, CarriesErrorsAndBareSuccess) {
  Promise<void> good;
  good.set({});
  EXPECT_TRUE(good.future().wait());
  Promise<void> bad;
  bad.set(Error(Code::kCorrupt, "some/reason", "text"));
  EXPECT_EQ(bad.future().wait().error().reason(), "some/reason");
}

TEST(Future, KeepsTheFirstResult) {
  Promise<int> promise;
  promise.set(1);
  promise.set(2);
  EXPECT_EQ(*promise.future().wait(), 1);
}

TEST(Future, OutlivesItsPromise) {
  auto promise = std::make_unique<Promise<std::string>>();
  const Future<std::string> future = promise->future();
  promise->set(std::string("kept"));
  promise.reset();
  EXPECT_EQ(*future.wait(), "kept");
}

TEST(Future, LearnsThatItsPromiseWasDropped) {
  std::optional<Promise<int>> dropped(std::in_place);
  const Future<int> first = dropped->future();
  dropped.reset();

  Promise<int> replaced;
  const Future<int> second = replaced.future();
  replaced = Promise<int>();

  for (const Future<int>& future : {first, second}) {
    ASSERT_TRUE(future.done());
    EXPECT_EQ(future.wait().error().reason(), "async/broken-promise");
    EXPECT_EQ(future.wait().error().code(), Code::kCancelled);
  }
}

TEST(Future, FollowsAPromiseThatMoves) {
  Promise<int> first;
  const Future<int> future = first.future();
  Promise<int> second = std::move(first);
  Promise<int> third;
  third = std::move(second);
  EXPECT_FALSE(future.done());
  third.set(3);
  EXPECT_EQ(*future.wait(), 3);
}

TEST(Future, StopsWaitingAtTheDeadline) {
  Promise<int> promise;
  const Future<int> future = promise.future();
  for (const auto deadline :
       {Deadline::in(std::chrono::nanoseconds(0)), Deadline::in(std::chrono::milliseconds(1)),
        Deadline::at(Clock::Mono::min())}) {
    EXPECT_EQ(future.wait(deadline).error().reason(), "async/deadline");
  }
  promise.set(5);
  EXPECT_EQ(*future.wait(Deadline::at(Clock::Mono::min())), 5) << "what is there needs no time";
}

TEST(Future, WakesEveryThreadThatWaits) {
  std::atomic<int> sum = 0;
  {
    const auto pool = make_thread_pool(4);
    Promise<int> promise;
    for (int i = 0; i < 4; ++i) {
      pool->add([&sum, future = promise.future(), i] {
        const auto deadline = i % 2 == 0 ? Deadline::never() : Deadline::in(std::chrono::hours(1));
        sum += future.wait(deadline).value_or(100);
      });
    }
    promise.set(5);
  }
  EXPECT_EQ(sum, 20);
}

TEST(Deadline, ALongSpanMeansNever) {
  EXPECT_TRUE(Deadline::never().is_never());
  EXPECT_TRUE(Deadline::in(std::chrono::nanoseconds::max()).is_never());
  EXPECT_FALSE(Deadline::in(std::chrono::hours(1)).is_never());
  EXPECT_FALSE(Deadline::never().passed());
}

TEST(Deadline, PassesWhenItsTimeComes) {
  const Clock::Mono now = system_clock().monotonic();
  EXPECT_TRUE(Deadline::at(now).passed());
  EXPECT_FALSE(Deadline::at(now + std::chrono::hours(1)).passed());
  EXPECT_TRUE(Deadline::in(std::chrono::seconds(-1)).passed());
}

}  // namespace
}  // namespace cairn
