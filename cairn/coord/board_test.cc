// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/board.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <map>

#include <gtest/gtest.h>

#include "cairn/async/mutex.h"
#include "cairn/base/bytes.h"
#include "cairn/testing/coordinator_suite.h"
#include "cairn/testing/must.h"

namespace cairn::coord {
namespace {

using cairn::testing::Coordinators;
using cairn::testing::must;
using cairn::testing::reason;
using cairn::testing::register_coordinator_suite;
using cairn::testing::run_ranks;

Deadline soon_enough() { return Deadline::in(std::chrono::minutes(2)); }

/// What all ranks see.
struct Wall {
  Mutex mutex;
  std::map<std::string, std::string> notes CAIRN_GUARDED_BY(mutex);
  std::size_t most CAIRN_GUARDED_BY(mutex) = 0;
};

class WallBoard : public Board {
 public:
  explicit WallBoard(std::shared_ptr<Wall> wall) : wall_(std::move(wall)) {}

  Result<void> put(const std::string& key, ByteSpan bytes) override {
    MutexLock lock(wall_->mutex);
    wall_->notes[key] = as_text(bytes);
    wall_->most = std::max(wall_->most, wall_->notes.size());
    return {};
  }
  Result<std::optional<Buffer>> find(const std::string& key) override {
    MutexLock lock(wall_->mutex);
    const auto at = wall_->notes.find(key);
    if (at == wall_->notes.end()) return std::optional<Buffer>();
    return std::optional(copy(at->second));
  }
  Result<void> remove(const std::string& key) override {
    MutexLock lock(wall_->mutex);
    wall_->notes.erase(key);
    return {};
  }

 protected:
  static Buffer copy(const std::string& text) {
    Buffer buffer = must(Buffer::allocate(text.size()));
    std::ranges::copy(as_bytes(text), buffer.mutable_bytes().begin());
    return buffer;
  }

  std::shared_ptr<Wall> wall_;
};

/// Shows each message once, to whom it is for.
class PostBoard final : public WallBoard {
 public:
  PostBoard(std::shared_ptr<Wall> wall, Place place) : WallBoard(std::move(wall)), place_(place) {}

  Result<void> put(const std::string& key, ByteSpan bytes) override {
    for (int to = place_.rank == 0 ? 1 : 0; to < (place_.rank == 0 ? place_.count : 1); ++to)
      must(WallBoard::put(std::to_string(to) + " " + key, bytes));
    return {};
  }
  Result<std::optional<Buffer>> find(const std::string& key) override {
    MutexLock lock(wall_->mutex);
    const auto node = wall_->notes.extract(std::to_string(place_.rank) + " " + key);
    if (node.empty()) return std::optional<Buffer>();
    return std::optional(copy(node.mapped()));
  }
  Result<void> remove(const std::string&) override { return {}; }
  Result<bool> settled() override { return ++asked_ % 3 == 0; }

 private:
  const Place place_;
  int asked_ = 0;
};

Coordinators open_all(const std::shared_ptr<Wall>& wall, int count) {
  Coordinators coordinators;
  for (int rank = 0; rank < count; ++rank)
    coordinators.push_back(must(open_board(std::make_unique<WallBoard>(wall), {rank, count})));
  return coordinators;
}

Coordinators make_on_a_wall(int count) { return open_all(std::make_shared<Wall>(), count); }

Coordinators make_by_post(int count) {
  const auto wall = std::make_shared<Wall>();
  Coordinators coordinators;
  for (int rank = 0; rank < count; ++rank) {
    const Place place{rank, count};
    coordinators.push_back(must(open_board(std::make_unique<PostBoard>(wall, place), place)));
  }
  return coordinators;
}

const bool kRegistered = register_coordinator_suite("Board", 1, &make_on_a_wall) &&
                         register_coordinator_suite("Board", 5, &make_on_a_wall) &&
                         register_coordinator_suite("BoardByPost", 4, &make_by_post);

TEST(Board, HoldsFewNotesHoweverLongItLasts) {
  const auto wall = std::make_shared<Wall>();
  run_ranks(open_all(wall, 3), [](Coordinator& me) {
    for (int call = 0; call < 50; ++call) must(me.barrier("again", soon_enough()));
  });
  MutexLock lock(wall->mutex);
  EXPECT_LE(wall->most, 3 * 3);
}

TEST(Board, RefusesRanksThatCannotBe) {
  EXPECT_EQ(reason(open_board(std::make_unique<WallBoard>(std::make_shared<Wall>()), {3, 3})),
            "coord/bad-rank");
}

TEST(Board, SaysWhoseMessageIsNone) {
  const auto wall = std::make_shared<Wall>();
  must(WallBoard(wall).put("rank-1-1", as_bytes("not ours\n")));
  Coordinators job = open_all(wall, 2);
  const auto result = job[0]->barrier("save 1", soon_enough());
  ASSERT_EQ(reason(result), "coord/rank-failed");
  EXPECT_NE(result.error().message().find("from rank 1"), std::string::npos)
      << result.error().message();
}

TEST(Board, AnInterruptedRankEndsTheCallOfAll) {
  for (const int who : {0, 1}) {
    const auto wall = std::make_shared<Wall>();
    std::latch over(1);
    std::atomic<int> asked = 0;
    Coordinators job;
    for (int rank = 0; rank < 2; ++rank) {
      const auto interrupted = [&asked] { return ++asked > 5; };
      job.push_back(must(open_board(std::make_unique<WallBoard>(wall), {rank, 2}, system_clock(),
                                    rank == who ? Interrupted(interrupted) : Interrupted())));
    }
    run_ranks(job, [&](Coordinator& me) {
      // Until the other one has said that it gave up: before that the call may still succeed here.
      if (me.rank() != who) over.wait();
      const auto result = me.barrier("save 1", soon_enough());
      if (me.rank() == who) over.count_down();
      ASSERT_EQ(reason(result), "coord/rank-failed");
      EXPECT_NE(result.error().message().find("rank " + std::to_string(who)), std::string::npos);
      EXPECT_NE(result.error().message().find("interrupted"), std::string::npos);
    });
  }
}

/// Fails once, while somebody waits.
class InterruptedBoard final : public WallBoard {
 public:
  using WallBoard::WallBoard;
  Result<bool> settled() override {
    if (asked_++ > 0) return true;
    return Error(Code::kCancelled, "board/interrupted", "it was interrupted");
  }

 private:
  int asked_ = 0;
};

TEST(Board, WhatItSaysWhileARankWaitsEndsTheCallOfAll) {
  const auto wall = std::make_shared<Wall>();
  Coordinators job = open_all(wall, 2);
  job[1] = must(open_board(std::make_unique<InterruptedBoard>(wall), {1, 2}));
  for (const int rank : {1, 0}) {
    const auto result = job[rank]->barrier("save 1", soon_enough());
    ASSERT_EQ(reason(result), "coord/rank-failed");
    EXPECT_NE(result.error().message().find("rank 1 failed: it was interrupted"), std::string::npos)
        << result.error().message();
  }
}

}  // namespace
}  // namespace cairn::coord
