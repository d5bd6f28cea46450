// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/staging_pool.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cairn/base/bytes.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

using testing::must;

TEST(StagingPool, GivesTheSameMemoryAgain) {
  StagingPool pool(kMiB, system_clock());
  const std::byte* first = nullptr;
  for (int round = 0; round < 10; ++round) {
    const Buffer buffer = must(pool.take(100'000));
    if (first == nullptr) first = buffer.data();
    EXPECT_EQ(buffer.data(), first);
    EXPECT_EQ(buffer.size(), 100'000U);
  }
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_GE(pool.allocated(), 100'000U);
}

TEST(StagingPool, NeverAllocatesMoreThanItsLimit) {
  StagingPool pool(kMiB, system_clock());
  testing::Random random(1);
  std::vector<Buffer> held;
  for (int round = 0; round < 20'000; ++round) {
    const bool drops = testing::below(random, 3) == 0;
    if (drops && !held.empty()) {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(testing::below(random, held.size())));
    } else if (auto buffer = must(pool.try_take(1 + testing::below(random, 200'000)))) {
      held.push_back(*std::move(buffer));
    }
    ASSERT_LE(pool.allocated(), pool.limit());
    ASSERT_LE(pool.in_use(), pool.allocated());
  }
  EXPECT_EQ(pool.peak() <= kMiB, true);
  held.clear();
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_TRUE(must(pool.try_take(kMiB))) << "what is kept makes way";
}

TEST(StagingPool, WaitsUntilSomethingComesBack) {
  StagingPool pool(kMiB, system_clock());
  std::optional<Buffer> all = must(pool.take(kMiB));
  EXPECT_FALSE(must(pool.try_take(1)));
  std::thread other([&] { EXPECT_EQ(must(pool.take(kMiB / 2)).size(), kMiB / 2); });
  all.reset();
  other.join();
}

TEST(StagingPool, RefusesWhatCanNeverFit) {
  StagingPool pool(kMiB, system_clock());
  const auto refused = pool.take(kMiB + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "staging/too-large");
}

TEST(StagingPool, GivesMemoryBackAfterAnIdleTimeOnly) {
  testing::ManualClock clock;
  StagingPool pool(kMiB, clock);
  std::optional<Buffer> used = must(pool.take(1000));
  clock.advance(std::chrono::hours(1));
  pool.release_idle(std::chrono::minutes(1));
  EXPECT_GT(pool.allocated(), 0U) << "in use";
  used.reset();
  pool.release_idle(std::chrono::minutes(1));
  EXPECT_GT(pool.allocated(), 0U) << "used a moment ago";
  clock.advance(std::chrono::minutes(1));
  pool.release_idle(std::chrono::minutes(1));
  EXPECT_EQ(pool.allocated(), 0U);
}

TEST(StagingPool, MayDieBeforeItsBuffers) {
  Buffer last;
  {
    StagingPool pool(kMiB, system_clock());
    last = must(pool.take(5000));
  }
  std::ranges::fill(last.mutable_bytes(), std::byte{1});
}

}  // namespace
}  // namespace cairn
