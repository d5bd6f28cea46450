// SPDX-License-Identifier: Apache-2.0
// Steps whose callbacks save: what is marked, and what goes for it.
#include <filesystem>

#include <gtest/gtest.h>

#include "cairn/async/background.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/run/mark.h"
#include "cairn/run/ownership.h"
#include "cairn/testing/forwarding_coordinator.h"
#include "cairn/testing/must.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;

class SavesOfCallbacks : public ::testing::Test {
 protected:
  ~SavesOfCallbacks() override { wait_for_background(); }
  std::unique_ptr<Checkpointer> make() {
    return must(Checkpointer::make({.base_path = base_,
                                    .save_interval = std::chrono::minutes(1),
                                    .now = [this] { return now_; },
                                    .delete_old_temp_checkpoints = false},
                                   runtime_));
  }
  /// A step at which it is time for a temporary save.
  void step(Checkpointer& run, std::int64_t number, const CheckpointCallback& callback) {
    now_ += std::chrono::minutes(2);
    EXPECT_TRUE(must(run.on_step(number, {.true_callbacks = {callback}})));
    must(run.wait_until_finished());
  }
  bool has(const std::string& file) { return std::filesystem::exists(base_ + "/" + file); }
  Mark mark_of(const std::string& name) {
    return must(parse_mark(testing::read_file(base_ + "/" + name + "/metadata.json")));
  }

  testing::TempDir dir_;
  const std::string base_ = dir_ / "run";
  Clock::Wall now_ = system_clock().wall();
  int warned_ = 0;
  std::shared_ptr<Runtime> runtime_ = std::make_shared<Runtime>(
      RuntimeOptions{.threads = 1, .log = [this](const LogEntry& entry) {
                       if (entry.event == std::string("checkpointer/nothing-saved")) ++warned_;
                     }});
  const CheckpointCallback saves_nothing_ = [](const std::string&, const Mesh*, const Json&) {
    return Result<void>();
  };
  const CheckpointCallback saves_in_its_way_ = [](const std::string& path, const Mesh*,
                                                  const Json&) {
    std::filesystem::create_directories(path + "/below");
    testing::write_file(path + "/below/model.bin", path);
    return Result<void>();
  };
};

TEST_F(SavesOfCallbacks, RemoveNothingWhenTheySavedNothing) {
  auto run = make();
  must(
      run->save_checkpoint(Tree(Value(1.0)), "run-1", {.save = {.step = 1}, .is_temporary = true}));
  must(run->wait_until_finished());
  step(*run, 2, saves_nothing_);
  EXPECT_TRUE(has("run-1/cairn.json"));
  EXPECT_EQ(warned_, 1);
  EXPECT_EQ(run->policy().last_save_step(), 2) << "nobody asks again at once";
  step(*run, 3, saves_in_its_way_);
  EXPECT_FALSE(has("run-1")) << "its time has come";
  EXPECT_TRUE(mark_of("run-3").is_temporary);
}

TEST_F(SavesOfCallbacks, RemoveNothingForDirectoriesWithNothingInThem) {
  auto run = make();
  step(*run, 1, saves_in_its_way_);
  step(*run, 2, [](const std::string& path, const Mesh*, const Json&) {
    std::filesystem::create_directories(path + "/empty");
    return Result<void>();
  });
  EXPECT_EQ(warned_, 1);
  EXPECT_TRUE(has("run-1/metadata.json"));
  EXPECT_FALSE(has("run-2/metadata.json"));
}

/// Counts how often rank 0 has said what lies there before the callbacks.
class Listening final : public testing::ForwardingCoordinator {
 public:
  using ForwardingCoordinator::ForwardingCoordinator;
  Result<Buffer> broadcast(ByteSpan bytes, std::string_view phase, Deadline deadline) override {
    auto heard = ForwardingCoordinator::broadcast(bytes, phase, deadline);
    if (phase == "before the callbacks") ++heard_;
    return heard;
  }
  int heard() const { return heard_; }

 private:
  int heard_ = 0;
};

TEST_F(SavesOfCallbacks, AreMarkedWhicheverRankWrites) {
  testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
    Listening listening(coordinator);
    const auto runtime =
        std::make_shared<Runtime>(RuntimeOptions{.threads = 1, .coordinator = &listening});
    const auto run = must(Checkpointer::make({.base_path = base_}, runtime));
    int called = 0;
    const CheckpointCallback saves = [&](const std::string& path, const Mesh*, const Json&) {
      EXPECT_EQ(listening.heard(), ++called) << "it may write before rank 0 has looked";
      if (coordinator.rank() == 1) {
        std::filesystem::create_directories(path);
        testing::write_file(path + "/model.bin", path);
      }
      return Result<void>();
    };
    for (std::int64_t number = 1; number <= 50; ++number)
      must(run->on_step(number, {.force = true, .true_callbacks = {saves}}));
    must(run->wait_until_finished());
  });
  for (int number = 1; number <= 50; ++number)
    EXPECT_TRUE(has("run-" + std::to_string(number) + "/metadata.json")) << number;
}

TEST_F(SavesOfCallbacks, LeaveOlderCheckpointsOfTheSameNameAsTheyAre) {
  using Make = std::function<void()>;
  const Make older[] = {
      [&] { must(make()->save_checkpoint(Tree(Value(1.0)), "run-5", {.save = {.step = 5}})); },
      [&] { must(make()->on_step(5, {.force = true, .true_callbacks = {saves_in_its_way_}})); },
      [&] { must(saves_in_its_way_(base_ + "/run-5", nullptr, Json())); },
  };
  for (const Make& save : older) {
    std::filesystem::remove_all(base_);
    save();
    wait_for_background();
    const bool is_marked = has("run-5/metadata.json");
    auto run = make();
    must(run->save_checkpoint(Tree(Value(1.0)), "run-4",
                              {.save = {.step = 4}, .is_temporary = true}));
    warned_ = 0;
    step(*run, 5, saves_nothing_);
    EXPECT_EQ(warned_, 1);
    EXPECT_TRUE(has("run-4"));
    EXPECT_EQ(has("run-5/metadata.json"), is_marked);
    EXPECT_FALSE(is_marked && mark_of("run-5").is_temporary);
    step(*run, 6, saves_in_its_way_);
    EXPECT_TRUE(has("run-5"));
    EXPECT_FALSE(has("run-4"));
  }
}

TEST_F(SavesOfCallbacks, MarkOlderCheckpointsThatTheySaveAgain) {
  must(make()->save_checkpoint(Tree(Value(1.0)), "run-5", {.save = {.step = 5}}));
  wait_for_background();
  auto run = make();
  step(*run, 5, [&](const std::string& path, const Mesh*, const Json&) -> Result<void> {
    CAIRN_TRY(run->manager().save_tree(Tree(Value(2.0)), path));
    return {};
  });
  EXPECT_TRUE(mark_of("run-5").is_temporary);
  step(*run, 6, saves_in_its_way_);
  EXPECT_FALSE(has("run-5"));
  run->policy().set_last_save_step(0);
  step(*run, 6, [](const std::string& path, const Mesh*, const Json&) {
    testing::write_file(path + "/below/model.bin", "longer than it was: " + path);
    return Result<void>();
  });
  EXPECT_EQ(warned_, 0);
}

TEST_F(SavesOfCallbacks, FailOnAllRanksIfTheyCannotBeMarked) {
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    const auto runtime =
        std::make_shared<Runtime>(RuntimeOptions{.threads = 1, .coordinator = &coordinator});
    const auto run = must(Checkpointer::make({.base_path = base_}, runtime));
    const CheckpointCallback is_taken_over = [&](const std::string& path, const Mesh* mesh,
                                                 const Json& mark) -> Result<void> {
      if (coordinator.rank() > 0) return {};
      // By another process, as far as the files say.
      testing::write_file(base_ + "/.cairn-owner.json",
                          dump_owner_file({.run_id = "other",
                                           .epoch = 99,
                                           .host = "elsewhere",
                                           .process = 1,
                                           .boot_id = "b",
                                           .time = "2026-01-01T00:00:00+00:00"}));
      return saves_in_its_way_(path, mesh, mark);
    };
    const auto failed = run->on_step(1, {.force = true, .true_callbacks = {is_taken_over}});
    EXPECT_EQ(reason(failed), "run/taken-over");
    EXPECT_EQ(run->policy().last_save_step(), 0);
  });
  EXPECT_FALSE(has("run-1/metadata.json"));
}

}  // namespace
}  // namespace cairn
