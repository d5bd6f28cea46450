// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/rendezvous.h"

#include <atomic>
#include <functional>
#include <map>
#include <semaphore>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "cairn/storage/forwarding_store.h"
#include "cairn/storage/local/local_store.h"
#include "cairn/storage/local/posix.h"
#include "cairn/storage/memory/memory_store.h"
#include "cairn/testing/coordinator_suite.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::coord {
namespace {

using cairn::testing::Coordinators;
using cairn::testing::ManualClock;
using cairn::testing::must;
using cairn::testing::reason;
using cairn::testing::register_coordinator_suite;
using cairn::testing::run_ranks;
using cairn::testing::TempDir;
using storage::Store;

Deadline soon_enough() { return Deadline::in(std::chrono::minutes(2)); }
Deadline at_once() { return Deadline::in(std::chrono::nanoseconds(0)); }

// A store that counts, and says `unavailable` to every so manyeth request if asked to.
class WatchedStore final : public Store {
 public:
  explicit WatchedStore(std::shared_ptr<Store> store, int failing = 0)
      : store_(std::move(store)), failing_(failing) {}

  std::atomic<int> puts = 0;
  std::atomic<int> reads = 0;
  std::atomic<int> others = 0;

  std::string describe(std::string_view key) const override { return store_->describe(key); }
  storage::Capabilities capabilities() const override { return store_->capabilities(); }
  Result<storage::ObjectInfo> stat(std::string_view key) override {
    ++others;
    return store_->stat(key);
  }
  Result<std::unique_ptr<storage::ObjectReader>> open(std::string_view key) override {
    if (fails(reads)) return busy();
    return store_->open(key);
  }
  Result<std::unique_ptr<storage::ObjectWriter>> create(std::string_view key,
                                                        std::uint64_t size) override {
    ++others;
    return store_->create(key, size);
  }
  Result<storage::ObjectInfo> put(std::string_view key, ByteSpan bytes,
                                  const storage::Condition& condition) override {
    if (fails(puts)) return busy();
    return store_->put(key, bytes, condition);
  }
  Result<void> remove(std::string_view key) override {
    ++others;
    return store_->remove(key);
  }
  Result<std::vector<storage::ListEntry>> list(std::string_view key, bool recursive) override {
    ++others;
    return store_->list(key, recursive);
  }
  Result<void> sync() override {
    ++others;
    return store_->sync();
  }

 private:
  bool fails(std::atomic<int>& counter) { return ++counter % 3 == 0 && failing_ != 0; }
  static Error busy() { return Error(Code::kUnavailable, "storage/busy", "come back later"); }

  std::shared_ptr<Store> store_;
  int failing_;
};

std::shared_ptr<Store> open_directory(const std::string& path) {
  return must(storage::open_local_store(storage::posix_file_system(), path));
}

Coordinators open_all(const std::vector<std::shared_ptr<Store>>& stores) {
  Coordinators coordinators;
  const int count = static_cast<int>(stores.size());
  for (int rank = count - 1; rank >= 0; --rank) {
    coordinators.push_back(
        must(open_rendezvous(stores[static_cast<std::size_t>(rank)], {rank, count})));
  }
  return coordinators;
}

Coordinators open_all(const std::shared_ptr<Store>& store, int count) {
  return open_all(std::vector(static_cast<std::size_t>(count), store));
}

Coordinators make_in_memory(int count) { return open_all(storage::make_memory_store(), count); }

// Each rank with a store of its own, as in processes.
Coordinators make_in_a_directory(int count) {
  static TempDir dir;
  std::vector<std::shared_ptr<Store>> stores;
  for (int rank = 0; rank < count; ++rank) stores.push_back(open_directory(dir.path()));
  return open_all(stores);
}

const bool kRegistered =
    register_coordinator_suite("RendezvousInMemory", 1, &make_in_memory) &&
    register_coordinator_suite("RendezvousInMemory", 4, &make_in_memory) &&
    register_coordinator_suite("RendezvousInDirectory", 3, &make_in_a_directory);

std::map<std::string, Buffer> content_of(Store& store) {
  std::map<std::string, Buffer> content;
  for (const auto& entry : must(store.list("", true))) {
    content[entry.key] = must(read_all(store, entry.key, kMiB));
  }
  return content;
}

void put_back(Store& store, const std::map<std::string, Buffer>& content) {
  for (const auto& [key, bytes] : content) must(store.put(key, bytes.bytes()));
}

// What a job leaves that was killed in the midst of its calls.
std::map<std::string, Buffer> leftovers(const std::shared_ptr<Store>& store, int count, int calls) {
  const Coordinators job = open_all(store, count);
  run_ranks(job, [&](Coordinator& me) {
    for (int call = 0; call < calls; ++call) must(me.barrier("old", soon_enough()));
  });
  return content_of(*store);
}

TEST(Rendezvous, HoldsFewObjectsHoweverLongItLastsAndNoneAfterwards) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  {
    const Coordinators job = open_all(store, 3);
    run_ranks(job, [&](Coordinator& me) {
      for (int call = 0; call < 1000; ++call) {
        must(me.barrier("call " + std::to_string(call), soon_enough()));
        if (me.rank() == 0 && call % 50 == 0) {
          EXPECT_LE(must(store->list("", true)).size(), 5);
        }
      }
    });
  }
  EXPECT_TRUE(must(store->list("", true)).empty());
}

TEST(Rendezvous, TheOrderInWhichRanksLeaveDoesNotMatter) {
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
    const std::shared_ptr<Store> store = storage::make_memory_store();
    Coordinators job = open_all(store, 3);
    run_ranks(job, [](Coordinator& me) { must(me.barrier("once", soon_enough())); });
    for (const std::size_t rank : order) job[rank].reset();
    EXPECT_TRUE(must(store->list("", true)).empty());
  }
}

TEST(Rendezvous, LeavesForeignFilesAlone) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  const std::vector<std::string> names = {"rank-1", "rank-1-x", "notes", "alarm-", "rank-1-0/a"};
  for (const std::string& name : names) must(store->put(name, as_bytes("mine")));
  leftovers(store, 2, 1);
  EXPECT_EQ(content_of(*store).size(), names.size());
}

TEST(Rendezvous, ACallCostsOnePutAndAReadForEachRank) {
  constexpr int kCount = 6;
  constexpr int kCalls = 50;
  const std::shared_ptr<Store> shared = storage::make_memory_store();
  std::vector<std::shared_ptr<WatchedStore>> watched;
  std::vector<std::shared_ptr<Store>> stores;
  for (int rank = 0; rank < kCount; ++rank) {
    watched.push_back(std::make_shared<WatchedStore>(shared));
    stores.push_back(watched.back());
  }
  const Coordinators job = open_all(stores);
  const auto meet = [](Coordinator& me) { must(me.barrier("p", soon_enough())); };
  run_ranks(job, meet);
  for (auto& store : watched) store->puts = store->others = 0;
  for (int call = 0; call < kCalls; ++call) run_ranks(job, meet);
  for (auto& store : watched) {
    EXPECT_EQ(store->puts, kCalls);
    EXPECT_EQ(store->others, 0);
  }
}

TEST(Rendezvous, WaitingIsCheap) {
  ManualClock clock;
  const auto store = std::make_shared<WatchedStore>(storage::make_memory_store());
  const auto zero = must(open_rendezvous(store, {0, 1000}, clock));
  store->reads = 0;
  EXPECT_EQ(reason(zero->barrier("p", Deadline::in(std::chrono::minutes(1), clock))),
            "coord/late-ranks");
  EXPECT_LT(store->reads, (240 + 60) * 17 + 1000);
}

TEST(Rendezvous, ComesThroughAStoreThatIsOftenBusy) {
  const std::shared_ptr<Store> shared = storage::make_memory_store();
  std::vector<std::shared_ptr<Store>> stores;
  for (int rank = 0; rank < 3; ++rank) stores.push_back(std::make_shared<WatchedStore>(shared, 3));
  run_ranks(open_all(stores), [](Coordinator& me) {
    for (int call = 0; call < 50; ++call) {
      const Buffer got = must(me.broadcast(as_bytes(std::to_string(call)), "p", soon_enough()));
      EXPECT_EQ(as_text(got.bytes()), std::to_string(call));
    }
  });
}

TEST(Rendezvous, AJobThatWasKilledDoesNotDisturbTheNext) {
  for (const int calls : {1, 2, 7}) {
    const std::shared_ptr<Store> store = storage::make_memory_store();
    put_back(*store, leftovers(store, 4, calls));
    {
      run_ranks(open_all(store, 3), [](Coordinator& me) {
        for (int call = 0; call < 10; ++call) must(me.barrier("new", soon_enough()));
      });
    }
    EXPECT_TRUE(must(store->list("", true)).empty()) << "what was left is gone too";
  }
}

TEST(Rendezvous, ARankThatFindsAnOldVerdictWaitsForItsOwnRank0) {
  ManualClock clock;
  const std::shared_ptr<Store> store = storage::make_memory_store();
  put_back(*store, leftovers(store, 2, 1));
  const auto one = must(open_rendezvous(store, {1, 2}, clock));
  const auto late = one->barrier("old", Deadline::in(std::chrono::seconds(9), clock));
  ASSERT_EQ(reason(late), "coord/late-ranks");
  EXPECT_NE(late.error().message().find("from an earlier job"), std::string::npos)
      << late.error().message();
}

TEST(Rendezvous, ARankThatIsThereBeforeItsRank0GoesAlongWithIt) {
  const std::shared_ptr<Store> shared = storage::make_memory_store();
  put_back(*shared, leftovers(shared, 2, 1));
  const auto watched = std::make_shared<WatchedStore>(shared);
  const auto one = must(open_rendezvous(watched, {1, 2}));
  std::thread early([&] { EXPECT_EQ(reason(one->barrier("p", soon_enough())), "none"); });
  while (watched->puts == 0) std::this_thread::yield();
  const auto zero = must(open_rendezvous(shared, {0, 2}));
  EXPECT_EQ(reason(zero->barrier("p", soon_enough())), "none");
  early.join();
  EXPECT_EQ(content_of(*shared).size(), 2) << "the answer to the old session is gone";
}

TEST(Rendezvous, WhoeverStartsAsRank0TakesTheDirectoryOver) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  Coordinators old = open_all(store, 2);
  const auto meet = [](Coordinator& me) { must(me.barrier("p", soon_enough())); };
  run_ranks(old, meet);
  const Coordinators next = open_all(store, 2);
  run_ranks(old, [](Coordinator& me) {
    const auto result = me.barrier("q", me.rank() == 0 ? at_once() : soon_enough());
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message().find("another job was started"), std::string::npos);
  });
  old.clear();
  run_ranks(next, meet);
}

class DisturbedStore final : public storage::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  std::function<void()> before_put = [] {};
  std::function<void()> after_put = [] {};
  std::function<void()> before_open = [] {};

  Result<std::unique_ptr<storage::ObjectReader>> open(std::string_view key) override {
    before_open();
    return behind_->open(key);
  }
  Result<storage::ObjectInfo> put(std::string_view key, ByteSpan bytes,
                                  const storage::Condition& condition) override {
    before_put();
    auto done = behind_->put(key, bytes, condition);
    after_put();
    return done;
  }
};

// Rank 0 of the old job has looked whether the directory is still its own, and then puts its
// verdict.
TEST(Rendezvous, TheLastWordOfAnEarlierJobDoesNotDisturbTheNext) {
  for (const int rank_that_comes_first : {0, 1}) {
    const std::shared_ptr<Store> store = storage::make_memory_store();
    const auto disturbed = std::make_shared<DisturbedStore>(store);
    const Coordinators old = open_all({disturbed, store});
    const auto meet = [](Coordinator& me) { must(me.barrier("p", soon_enough())); };
    run_ranks(old, meet);
    Coordinators next;
    const auto watched = std::make_shared<DisturbedStore>(store);
    if (rank_that_comes_first == 1) next.push_back(must(open_rendezvous(watched, {1, 2})));
    bool taken_over = false;
    disturbed->before_put = [&] {
      if (!std::exchange(taken_over, true)) next.push_back(must(open_rendezvous(store, {0, 2})));
    };
    run_ranks(old, [](Coordinator& me) {
      me.barrier("q", soon_enough()).ignore_error("it may be over in time, or not");
    });
    if (rank_that_comes_first == 0) next.push_back(must(open_rendezvous(watched, {1, 2})));
    // Rank 1 sees the old job's last verdict before rank 0 puts its own again.
    std::binary_semaphore has_looked(0);
    int looks = 0;
    watched->before_open = [&] {
      if (++looks == 3) has_looked.release();
    };
    run_ranks(next, [&](Coordinator& me) {
      if (me.rank() == 0) has_looked.acquire();
      meet(me);
    });
    for (int call = 0; call < 2; ++call) run_ranks(next, meet);
  }
}

TEST(Rendezvous, RanksThatDisagreeInTheirFirstCallAllHearOfIt) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  const auto barrier = [](Coordinator& me, const char* phase) {
    const auto result = me.barrier(phase, soon_enough());
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message().find("save 8"), std::string::npos)
        << result.error().message();
  };
  // Ranks 2 and 3 begin when rank 0 has heard rank 1: it goes on looking, or has said its verdict.
  std::counting_semaphore<2> begin(0);
  int puts = 0;
  int looks = 0;
  const auto watched = std::make_shared<DisturbedStore>(store);
  watched->after_put = [&] {
    if (++puts == 2) begin.release(2);
  };
  watched->before_open = [&] {
    constexpr int kLooksAtAll = 4;
    if (puts == 1 && ++looks == 10 * kLooksAtAll) begin.release(2);
  };
  const auto zero = must(open_rendezvous(watched, {0, 4}));
  std::vector<std::thread> ranks;
  ranks.emplace_back([&] { barrier(*must(open_rendezvous(store, {1, 4})), "save 8"); });
  for (const int rank : {2, 3}) {
    ranks.emplace_back([&, rank] {
      begin.acquire();
      barrier(*must(open_rendezvous(store, {rank, 4})), "save 7");
    });
  }
  barrier(*zero, "save 7");
  for (auto& rank : ranks) rank.join();
}

TEST(Rendezvous, ARankThatWasStartedAnewIsNamed) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  const Coordinators job = open_all(store, 2);
  run_ranks(job, [](Coordinator& me) { must(me.barrier("p", soon_enough())); });
  const auto again = must(open_rendezvous(store, {1, 2}));
  EXPECT_EQ(reason(again->barrier("q", at_once())), "coord/late-ranks");
  const auto result = job[1]->barrier("q", soon_enough());
  ASSERT_EQ(reason(result), "coord/rank-failed");
  EXPECT_EQ(result.error().message().find("rank 1 failed: it was started anew, or two"), 0)
      << result.error().message();
}

TEST(Rendezvous, OfTwoProcessesWithOneRankOnlyOneGoesOn) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  Coordinators job = open_all(store, 2);
  job.push_back(must(open_rendezvous(store, {1, 2})));
  std::atomic<int> done = 0;
  run_ranks(job, [&](Coordinator& me) {
    const auto result = me.barrier("p", soon_enough());
    if (me.rank() == 1 && result) ++done;
    if (me.rank() == 1 && !result) {
      EXPECT_EQ(reason(result), "coord/rank-failed") << result.error().message();
    }
  });
  EXPECT_LE(done, 1);
}

TEST(Rendezvous, ARankThatComesAfterTheFirstCallFailedHearsOfIt) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  for (const bool early : {true, false}) {
    auto one = early ? must(open_rendezvous(store, {1, 2})) : nullptr;
    const auto zero = must(open_rendezvous(store, {0, 2}));
    if (!early) one = must(open_rendezvous(store, {1, 2}));
    EXPECT_EQ(reason(zero->barrier("p", at_once())), "coord/late-ranks");
    const auto result = one->barrier("p", Deadline::never());
    ASSERT_EQ(reason(result), "coord/late-ranks");
    EXPECT_EQ(result.error().message().find("rank 1 did not come"), 0);
  }
}

TEST(Rendezvous, RefusesFilesThatAreNoMessages) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  must(store->put("verdict", as_bytes("nonsense")));
  const auto refused = open_rendezvous(store, {1, 2});
  ASSERT_EQ(reason(refused), "coord/bad-message");
  EXPECT_EQ(refused.error().where(), store->describe("verdict"));
}

TEST(Rendezvous, AFileThatIsDamagedInACallEndsIt) {
  const std::shared_ptr<Store> store = storage::make_memory_store();
  const auto one = must(open_rendezvous(store, {1, 2}));
  must(store->put("verdict", as_bytes("nonsense")));
  const auto result = one->barrier("p", soon_enough());
  ASSERT_EQ(reason(result), "coord/rank-failed");
  EXPECT_NE(result.error().message().find("verdict: this is not a message"), std::string::npos);
}

TEST(Rendezvous, ASessionThatIsNoWordLeadsNowhere) {
  ManualClock clock;
  const std::shared_ptr<Store> store = storage::make_memory_store();
  must(store->put("verdict", as_bytes(R"({"session":"/../../etc/x","call":0,"operation":"barrier",)"
                                      R"("phase":"","outcome":"done","text":"","payload":0})"
                                      "\n")));
  const auto one = must(open_rendezvous(store, {1, 2}, clock));
  EXPECT_EQ(reason(one->barrier("p", Deadline::in(std::chrono::seconds(1), clock))),
            "coord/late-ranks");
  EXPECT_EQ(must(store->list("", true)).size(), 1);
}

TEST(Rendezvous, AFileThatIsReplacedWhileItIsReadIsSeenWhole) {
  const TempDir dir;
  std::vector<std::shared_ptr<Store>> stores;
  for (int rank = 0; rank < 2; ++rank) stores.push_back(open_directory(dir.path()));
  const std::string large(300'000, 'x');
  run_ranks(open_all(stores), [&](Coordinator& me) {
    for (int call = 0; call < 100; ++call) {
      const std::string mine = large.substr(0, static_cast<std::size_t>(call) * 2999);
      const Buffer got = must(me.broadcast(as_bytes(mine), "p", soon_enough()));
      ASSERT_EQ(got.size(), mine.size());
    }
  });
}

}  // namespace
}  // namespace cairn::coord
