// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include <gtest/gtest.h>

#include "cairn/manager/checkpointer.h"
#include "cairn/testing/forwarding_coordinator.h"
#include "cairn/testing/must.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using namespace std::chrono_literals;
using testing::must;

/// Time passes when it is told.
class ToldTime final : public Clock {
 public:
  Wall wall() const override { return Wall(now_.load()); }
  Mono monotonic() const override { return Mono(now_.load()); }
  void pause(std::chrono::nanoseconds span) override { system_clock().pause(span); }
  void advance(std::chrono::microseconds span) { now_ = now_.load() + span; }

 private:
  std::atomic<std::chrono::microseconds> now_ = std::chrono::microseconds(1h);
};

/// Counts what rank 0 says to the others, each of which takes a millisecond.
class SlowToSay final : public testing::ForwardingCoordinator {
 public:
  SlowToSay(coord::Coordinator& behind, ToldTime& clock)
      : ForwardingCoordinator(behind), clock_(clock) {}
  Result<Buffer> broadcast(ByteSpan bytes, std::string_view phase, Deadline deadline) override {
    ++broadcasts_;
    clock_.advance(1ms);
    return ForwardingCoordinator::broadcast(bytes, phase, deadline);
  }
  int broadcasts() const { return broadcasts_; }

 private:
  ToldTime& clock_;
  int broadcasts_ = 0;
};

TEST(RunOfRanks, AsksTheOthersNowAndThen) {
  const testing::TempDir dir;
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    ToldTime clock;
    SlowToSay slow(coordinator, clock);
    const auto runtime = std::make_shared<Runtime>(
        RuntimeOptions{.threads = 1, .coordinator = &slow, .clock = &clock});
    const auto run = must(Checkpointer::make(
        {.base_path = dir / "run", .step_policies = {{.every = 1500}}}, runtime));
    std::vector<std::int64_t> saved;
    for (std::int64_t step = 1; step <= 1000; ++step) {
      clock.advance(1ms);
      const bool is_forced = step == 777;
      if (must(run->on_step(step, Tree(Value(static_cast<double>(step))), {.force = is_forced})))
        saved.push_back(step);
    }
    EXPECT_LE(slow.broadcasts(), 40) << "at every fiftieth step, once it has learnt";
    EXPECT_GE(slow.broadcasts(), 20);
    if (must(run->on_step(1500, Tree(Value(2.0))))) saved.push_back(1500);
    must(run->wait_until_finished());
    EXPECT_EQ(saved, (std::vector<std::int64_t>{777, 1500}));
  });
}

TEST(RunOfRanks, AgreesAtTheStepsOfIntervalsWhateverARankHasNoted) {
  const testing::TempDir dir;
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    const auto runtime =
        std::make_shared<Runtime>(RuntimeOptions{.threads = 1, .coordinator = &coordinator});
    const auto run = must(Checkpointer::make(
        {.base_path = dir / "run", .step_policies = {{.every = 6}}, .agreement_share = 1e-9},
        runtime));
    for (std::int64_t step = 1; step < 6; ++step)
      EXPECT_FALSE(must(run->on_step(step, Tree(Value(1.0)))));
    if (coordinator.rank() == 1) run->policy().set_last_save_step(6);
    EXPECT_TRUE(must(run->on_step(6, Tree(Value(2.0)))));
    EXPECT_FALSE(must(run->on_step(6, Tree(Value(2.0))))) << "rank 0 has saved it";
    must(run->wait_until_finished());
  });
}

TEST(RunOfRanks, WaitsAsLongAsItsManagerSaysForOneThatNeverComes) {
  const testing::TempDir dir;
  const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2}))}});
  testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
    if (coordinator.rank() == 1) return;
    const auto runtime = std::make_shared<Runtime>(RuntimeOptions{.coordinator = &coordinator});
    const auto manager =
        std::make_shared<AsyncCheckpointManager>(AsyncManagerOptions{.timeout = 10ms}, runtime);
    const auto run =
        must(Checkpointer::make({.base_path = dir / "run", .manager = manager}, runtime));
    const auto stepped = run->on_step(1, tree, {.force = true});
    EXPECT_EQ(testing::reason(stepped), "coord/late-ranks");
    EXPECT_NE(stepped.error().to_string().find("rank 1"), std::string::npos)
        << stepped.error().to_string();
  });
}

/// Notes how long a save may wait for the others.
class Patience final : public testing::ForwardingCoordinator {
 public:
  using ForwardingCoordinator::ForwardingCoordinator;
  Result<Buffer> broadcast(ByteSpan bytes, std::string_view phase, Deadline deadline) override {
    if (phase == "save of step 7") until_ = deadline.time();
    return ForwardingCoordinator::broadcast(bytes, phase, deadline);
  }
  Clock::Mono until() const { return until_; }

 private:
  Clock::Mono until_ = {};
};

TEST(RunOfRanks, ItsSavesHaveTheTimeoutOfTheManager) {
  const testing::TempDir dir;
  testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
    Patience patience(coordinator);
    const auto runtime = std::make_shared<Runtime>(RuntimeOptions{.coordinator = &patience});
    AsyncCheckpointManager manager({.timeout = 70s}, runtime);
    const Clock::Mono before = system_clock().monotonic();
    SaveTreeOptions options{.save = {.step = 7, .timeout = 1ms}};
    must(must(manager.save_tree(Tree(Value(1.0)), dir / "c", options)).wait());
    EXPECT_GE(patience.until(), before + 70s);
    EXPECT_LE(patience.until(), system_clock().monotonic() + 70s);
  });
}

}  // namespace
}  // namespace cairn
