// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/ticker.h"

#include <atomic>
#include <latch>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

namespace cairn {
namespace {

using std::chrono::milliseconds;

TEST(Ticker, CallsAgainAndAgain) {
  Ticker ticker;
  std::latch three(3);
  std::atomic<int> calls = 0;
  const auto subscription = ticker.every(milliseconds(1), [&] {
    if (calls++ < 3) three.count_down();
  });
  three.wait();
}

TEST(Ticker, ServesSeveral) {
  Ticker ticker;
  std::latch both(2);
  std::atomic<bool> first = false;
  std::atomic<bool> second = false;
  const auto once = [&](std::atomic<bool>& done) {
    if (!done.exchange(true)) both.count_down();
  };
  const auto one = ticker.every(milliseconds(1), [&] { once(first); });
  const auto other = ticker.every(milliseconds(2), [&] { once(second); });
  both.wait();
}

TEST(Ticker, DoesNotCallWhatHasEnded) {
  Ticker ticker;
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    std::latch called(1);
    {
      const auto subscription = ticker.every(milliseconds(0), [&] {
        if (++*alive == 1) called.count_down();
      });
      called.wait();
    }
    alive.reset();  // a sanitizer sees who comes now
  }
}

TEST(Ticker, LetsAFunctionEndItself) {
  Ticker ticker;
  std::latch done(1);
  std::optional<Ticker::Subscription> subscription;
  std::latch stored(1);
  subscription.emplace(ticker.every(milliseconds(0), [&] {
    stored.wait();
    subscription.reset();
    done.count_down();
  }));
  stored.count_down();
  done.wait();
}

TEST(Ticker, MayGoBeforeItsSubscriptions) {
  Ticker::Subscription last;
  {
    Ticker ticker;
    last = ticker.every(milliseconds(1), [] {});
  }
}

}  // namespace
}  // namespace cairn
