// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/byte_budget.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cairn/async/executor.h"

namespace cairn {
namespace {

// Whether the kernel says that a thread of this process sleeps.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] == 'S';
}

// Returns when the thread has slept for many looks in a row: it waits for something.
void await_sleep(const std::atomic<pid_t>& thread) {
  for (int in_a_row = 0; in_a_row < 50;) {
    in_a_row = thread != 0 && sleeps(thread) ? in_a_row + 1 : 0;
    std::this_thread::yield();
  }
}

TEST(ByteBudget, CountsWhatIsHeld) {
  ByteBudget budget(100);
  EXPECT_EQ(budget.limit(), 100u);
  {
    const auto a = budget.acquire(30);
    const auto b = budget.acquire(70);
    EXPECT_EQ(a.bytes(), 30u);
    EXPECT_EQ(budget.in_use(), 100u);
  }
  EXPECT_EQ(budget.in_use(), 0u);
  const auto c = budget.acquire(10);
  EXPECT_EQ(budget.in_use(), 10u);
  EXPECT_EQ(budget.peak(), 100u);
}

TEST(ByteBudget, ALeaseThatMovesIsGivenBackOnce) {
  ByteBudget budget(100);
  ByteBudget::Lease a = budget.acquire(30);
  ByteBudget::Lease b = std::move(a);
  EXPECT_EQ(a.bytes(), 0u);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(b.bytes(), 30u);
  EXPECT_EQ(budget.in_use(), 30u);
  ByteBudget::Lease c = budget.acquire(20);
  c = std::move(b);
  EXPECT_EQ(budget.in_use(), 30u) << "what a lease held goes back when it takes another";
  c = ByteBudget::Lease();
  EXPECT_EQ(budget.in_use(), 0u);
}

TEST(ByteBudget, AnOversizedRequestTakesAll) {
  ByteBudget budget(100);
  const auto lease = budget.acquire(1'000'000);
  EXPECT_EQ(lease.bytes(), 100u);
  EXPECT_EQ(budget.in_use(), 100u);
  EXPECT_EQ(budget.peak(), 100u);
}

TEST(ByteBudget, AnOversizedRequestWaitsForTheWholeBudget) {
  ByteBudget budget(100);
  auto held = budget.acquire(1);
  std::atomic<pid_t> thread = 0;
  std::atomic<bool> got = false;
  std::thread oversized([&] {
    thread = gettid();
    const auto lease = budget.acquire(1000);
    got = true;
  });
  await_sleep(thread);
  EXPECT_FALSE(got);
  held = ByteBudget::Lease();
  oversized.join();
  EXPECT_TRUE(got);
}

TEST(ByteBudget, ARequestForNothingNeverWaits) {
  ByteBudget budget(100);
  const auto all = budget.acquire(100);
  EXPECT_EQ(budget.acquire(0).bytes(), 0u);
  ByteBudget none(0);
  EXPECT_EQ(none.acquire(5).bytes(), 0u);
}

TEST(ByteBudget, ServesInTheOrderOfRequests) {
  ByteBudget budget(100);
  auto held = budget.acquire(60);
  std::vector<std::uint64_t> order;  // guarded by the budget: each request excludes the next
  std::vector<std::thread> threads;
  // The second would fit at once, but the first came before.
  for (const std::uint64_t bytes : {80u, 30u, 90u}) {
    std::atomic<pid_t> thread = 0;
    threads.emplace_back([&budget, &order, &thread, bytes] {
      thread = gettid();
      const auto lease = budget.acquire(bytes);
      order.push_back(bytes);
    });
    await_sleep(thread);
  }
  EXPECT_EQ(budget.in_use(), 60u);
  held = ByteBudget::Lease();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<std::uint64_t>{80, 30, 90}));
}

TEST(ByteBudget, LetsSeveralWaitersInAtOnce) {
  ByteBudget budget(100);
  auto held = budget.acquire(100);
  std::array<std::atomic<pid_t>, 3> ids{};
  std::atomic<int> inside = 0;
  std::vector<std::thread> threads;
  for (auto& id : ids) {
    threads.emplace_back([&] {
      id = gettid();
      const auto lease = budget.acquire(30);
      ++inside;
      while (inside < 3) std::this_thread::yield();
    });
  }
  for (const auto& id : ids) await_sleep(id);
  held = ByteBudget::Lease();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.peak(), 100u);
}

TEST(ByteBudget, IsNeverExceededByManyThreads) {
  constexpr std::uint64_t kLimit = 1000;
  ByteBudget budget(kLimit);
  const auto pool = make_thread_pool(8);
  std::atomic<std::uint64_t> held = 0;
  std::atomic<std::uint64_t> most = 0;
  EXPECT_TRUE(for_each_index(*pool, 2000, [&](std::size_t i) {
    std::mt19937 random(static_cast<std::uint32_t>(i));
    const auto lease = budget.acquire(random() % (i % 10 == 0 ? 3000 : 400));
    const std::uint64_t now = held.fetch_add(lease.bytes()) + lease.bytes();
    for (std::uint64_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    held.fetch_sub(lease.bytes());
    return Result<void>();
  }));
  EXPECT_LE(most, kLimit);
  EXPECT_LE(budget.peak(), kLimit);
  EXPECT_GE(budget.peak(), most);
  EXPECT_EQ(budget.in_use(), 0u);
}

}  // namespace
}  // namespace cairn
