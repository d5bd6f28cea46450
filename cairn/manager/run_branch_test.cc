// SPDX-License-Identifier: Apache-2.0
// Runs that go back to an earlier step: what is the latest then, and what retention may remove.
#include "cairn/manager/run_branch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/async/background.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/run/apply_retention.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

namespace files = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::must;

Tree tree_of(std::int64_t seed) {
  testing::Random random(static_cast<std::uint64_t>(seed));
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {10, 3})}});
}

/// A job after another in one run directory. Each save holds a tree of its own.
class Rewinding : public ::testing::Test {
 protected:
  ~Rewinding() override { end_job(); }

  std::shared_ptr<Runtime> make_runtime() {
    return std::make_shared<Runtime>(RuntimeOptions{.threads = 2, .log = [this](const LogEntry& e) {
                                                      MutexLock lock(mutex_);
                                                      log_[std::string(e.event)] = e.message;
                                                    }});
  }
  void end_job() {
    run_.reset();
    wait_for_background();  // until nobody here owns the run
  }
  void start_job(CheckpointerOptions options = {}) {
    end_job();
    options.base_path = base_;
    options.step_policies = {{.every = 1}};
    run_ = must(Checkpointer::make(std::move(options), make_runtime()));
  }
  void save(std::int64_t step) {
    must(run_->on_step(step, tree_of(step)));
    must(run_->wait_until_finished());
  }
  void save_all(const std::vector<std::int64_t>& steps) {
    for (const std::int64_t step : steps) save(step);
  }
  std::int64_t load(LoadCheckpointOptions options = {}) {
    const auto loaded = must(run_->load_checkpoint(options));
    return *loaded.extras.find("step")->integer();
  }
  std::int64_t load_step(std::int64_t step) {
    return load({.path = base_ + "/run-" + std::to_string(step)});
  }
  std::string told(const std::string& event) {
    MutexLock lock(mutex_);
    const auto found = log_.find(event);
    return found == log_.end() ? "" : found->second;
  }
  void forget_log() {
    MutexLock lock(mutex_);
    log_.clear();
  }
  std::vector<std::int64_t> steps(bool abandoned) {
    std::vector<std::int64_t> found;
    for (const RunEntry& entry : must(list_run(base_, *make_runtime()))) {
      if (entry.abandoned == abandoned) found.push_back(*entry.step);
    }
    return found;
  }
  std::vector<std::int64_t> branch() { return steps(false); }
  std::vector<std::int64_t> abandoned() { return steps(true); }

  /// Flips a bit in the middle of every chunk.
  void damage(std::int64_t step) {
    const std::string path = base_ + "/run-" + std::to_string(step);
    for (const auto& file : files::recursive_directory_iterator(path)) {
      if (!file.is_regular_file() || !file.path().filename().string().starts_with('0')) continue;
      std::fstream chunk(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      chunk.seekg(60);
      const int byte = chunk.get();
      chunk.seekp(60);
      chunk.put(static_cast<char>(byte ^ 1));
    }
  }

  testing::TempDir dir_;
  const std::string base_ = dir_ / "run";
  Mutex mutex_;
  std::map<std::string, std::string> log_ CAIRN_GUARDED_BY(mutex_);
  std::unique_ptr<Checkpointer> run_;
};

TEST_F(Rewinding, ResumesFromTheBranchThatWasSavedLast) {
  start_job();
  save_all({1, 2, 3, 4, 5, 6, 7, 8});
  start_job();
  EXPECT_EQ(load_step(5), 5);
  save(6);
  EXPECT_THAT(told("checkpointer/rewound"), AllOf(HasSubstr("run-7"), HasSubstr("run-8")));
  EXPECT_THAT(told("checkpointer/rewound"), ::testing::Not(HasSubstr("run-5")));
  start_job();
  EXPECT_EQ(load(), 6);
  EXPECT_THAT(told("discovery/abandoned"), HasSubstr("run-8"));
  EXPECT_THAT(branch(), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(abandoned(), ElementsAre(8, 7));
}

TEST_F(Rewinding, GoesOnWhereTheOldBranchWas) {
  start_job();
  save_all({1, 2, 3, 4});
  load_step(2);
  save_all({3, 4, 5});
  forget_log();
  start_job();
  EXPECT_EQ(load(), 5);
  EXPECT_THAT(abandoned(), IsEmpty()) << "3 and 4 were saved again";
  save(6);
  EXPECT_EQ(told("checkpointer/rewound"), "");
  EXPECT_EQ(told("discovery/abandoned"), "");
}

TEST_F(Rewinding, IsNoticedWithoutALoad) {
  start_job();
  save_all({1, 2, 3});
  save(2);
  EXPECT_THAT(told("checkpointer/rewound"), HasSubstr("run-3"));
  EXPECT_THAT(branch(), ElementsAre(2, 1));
  forget_log();
  start_job();
  save(1);
  EXPECT_THAT(told("checkpointer/rewound"), HasSubstr("run-2")) << "it started from the beginning";
  EXPECT_THAT(branch(), ElementsAre(1));
  EXPECT_THAT(abandoned(), ElementsAre(3, 2));
}

TEST_F(Rewinding, TheCallerMayGoBackToTheAbandonedBranch) {
  start_job();
  save_all({1, 2, 3, 4});
  load_step(1);
  save(2);
  EXPECT_THAT(abandoned(), ElementsAre(4, 3));
  start_job();
  EXPECT_EQ(load_step(4), 4);
  save(5);
  EXPECT_THAT(told("checkpointer/rewound"), HasSubstr("run-2"));
  EXPECT_THAT(branch(), ElementsAre(5, 4, 3, 1)) << "run-2 of this branch was replaced";
  EXPECT_THAT(abandoned(), ElementsAre(2));
  start_job();
  EXPECT_EQ(load(), 5);
}

TEST_F(Rewinding, ALoadToCompareChangesNothing) {
  start_job();
  save_all({1, 2, 3});
  load_step(1);
  load_step(3);
  save(4);
  EXPECT_EQ(told("checkpointer/rewound"), "");
  EXPECT_THAT(branch(), ElementsAre(4, 3, 2, 1));
}

TEST_F(Rewinding, RulesCountTheBranchThatGoesOn) {
  start_job();
  save_all({100, 200, 300});
  start_job({.retention = {.keep_last_n = 2}});
  save(150);
  EXPECT_THAT(branch(), ElementsAre(150, 100));
  EXPECT_THAT(abandoned(), ElementsAre(300, 200)) << "one save is no reason to drop them";
  EXPECT_EQ(load(), 150);
  save(160);
  EXPECT_THAT(branch(), ElementsAre(160, 150));
  EXPECT_THAT(abandoned(), IsEmpty()) << "as many were saved since as are to be kept";
}

TEST_F(Rewinding, GoingBackInOneJobIsSeenWhateverStepComesNext) {
  start_job();
  save_all({1, 2, 3, 4});
  load_step(2);
  save(5);
  EXPECT_THAT(told("checkpointer/rewound"), HasSubstr("run-4"));
  EXPECT_THAT(branch(), ElementsAre(5, 2, 1));
  EXPECT_THAT(abandoned(), ElementsAre(4, 3));
}

TEST_F(Rewinding, AnAbandonedOneStaysUntilARuleOrAPersonRemovesIt) {
  start_job();
  save_all({1, 2, 3});
  load_step(1);
  save(2);
  EXPECT_THAT(abandoned(), ElementsAre(3)) << "there is no rule";
  start_job({.retention = {.keep_every_n = 3}});
  load();
  save(4);
  EXPECT_THAT(abandoned(), ElementsAre(3)) << "the rule wants it";
}

TEST_F(Rewinding, TheFirstTemporarySaveAfterItStays) {
  start_job();
  save_all({1, 2, 3});
  start_job();
  load_step(1);
  must(run_->save_checkpoint(tree_of(2), "run-2", {.save = {.step = 2}, .is_temporary = true}));
  must(run_->wait_until_finished());
  must(apply_retention(base_, {}, *make_runtime()));
  EXPECT_THAT(branch(), ElementsAre(2, 1));
}

TEST_F(Rewinding, AfterAFallbackTheDamagedOnesCountAsNothing) {
  start_job();
  save_all({100, 200, 300});
  damage(200);
  damage(300);
  start_job({.retention = {.keep_last_n = 2}});
  EXPECT_EQ(load({.fallback = true}), 100);
  for (const std::int64_t step : {120, 140, 160}) {
    save(step);
    EXPECT_EQ(branch().front(), step);
    EXPECT_EQ(load(), step);
  }
  EXPECT_THAT(branch(), ElementsAre(160, 140));
}

TEST_F(Rewinding, WhatALoadFoundDamagedDoesNotCountForOtherProcessesEither) {
  start_job();
  save_all({100, 200, 300});
  damage(200);
  damage(300);
  start_job();
  EXPECT_EQ(load({.fallback = true}), 100);
  end_job();
  const auto runtime = make_runtime();
  must(apply_retention(base_, {.rules = {.keep_last_n = 2}}, *runtime));
  EXPECT_THAT(branch(), ElementsAre(300, 200, 100));
  start_job({.retention = {.keep_last_n = 2}});
  EXPECT_EQ(load({.fallback = true}), 100);
  // A new save at the same place is another matter.
  save_all({200, 300});
  must(apply_retention(base_, {.rules = {.keep_last_n = 2}}, *runtime));
  EXPECT_THAT(branch(), ElementsAre(300, 200));
}

TEST_F(Rewinding, ALinkToACheckpointNeitherProtectsNorReplacesIt) {
  for (const RetentionRules& rules :
       {RetentionRules{}, RetentionRules{.keep_last_n = 1}, RetentionRules{.max_bytes = 1}}) {
    files::remove_all(base_);
    start_job({.retention = rules});
    for (const std::int64_t step : {1, 2, 3}) {
      save(step);
      files::remove(base_ + "/stable");
      files::create_directory_symlink("run-" + std::to_string(step), base_ + "/stable");
      EXPECT_EQ(load(), step);
    }
    must(apply_retention(base_, {.rules = {.keep_last_n = 1}}, *make_runtime()));
    EXPECT_EQ(load(), 3);
  }
}

TEST_F(Rewinding, ACheckpointOfAnotherRunDoesNotTakeTheBranchOver) {
  const std::string other = dir_ / "other";
  files::create_directories(other);
  start_job();
  for (std::int64_t step = 1; step <= 9; ++step) save(step);
  files::rename(base_ + "/run-9", other + "/run-9");
  end_job();
  files::remove_all(base_);
  start_job({.retention = {.keep_last_n = 1}});
  save_all({100, 200});
  files::copy(other + "/run-9", base_ + "/baseline", files::copy_options::recursive);
  save_all({300, 400});
  EXPECT_THAT(branch(), ElementsAre(400, 9));
  start_job();
  EXPECT_EQ(load(), 400);
}

TEST_F(Rewinding, ASaveStaysBesideOneByHandOfAHigherStepAndALaterTime) {
  start_job({.retention = {.keep_last_n = 1}});
  save(100);
  SaveInternals by_hand;
  by_hand.mark = R"({"step": 500, "timestamp": "2999-01-01T00:00:00+00:00"})";
  must(cairn::save_checkpoint({{"", tree_of(500)}}, base_ + "/by-hand", {}, *make_runtime(),
                              &by_hand));
  for (const std::int64_t step : {150, 200}) {
    save(step);
    EXPECT_TRUE(files::exists(base_ + "/run-" + std::to_string(step)));
  }
  EXPECT_FALSE(files::exists(base_ + "/run-150"));
}

TEST_F(Rewinding, CopiesUnderAnotherNameAreNotTheRuns) {
  start_job({.retention = {.keep_last_n = 1}});
  save(1);
  files::copy(base_ + "/run-1", base_ + "/best-model", files::copy_options::recursive);
  save_all({2, 3});
  EXPECT_TRUE(files::exists(base_ + "/best-model"));
  EXPECT_FALSE(files::exists(base_ + "/run-1"));
}

TEST_F(Rewinding, OtherSystemsCheckpointsAreOrderedByStepThenByTime) {
  start_job();
  save_all({5, 6});
  const auto mark = [&](const std::string& name, const std::string& text) {
    files::create_directories(base_ + "/" + name);
    std::ofstream(base_ + "/" + name + "/metadata.json") << text;
  };
  mark("before", R"({"step": 9, "timestamp": "2001-01-01T00:00:00+00:00"})");
  mark("after", R"({"step": 9, "timestamp": "2999-01-01T00:00:00+00:00"})");
  mark("early", R"({"step": 4, "timestamp": "2001-01-01T00:00:00+00:00"})");
  mark("timeless", R"({"step": 8})");
  EXPECT_THAT(branch(), ElementsAre(9, 8, 6, 5, 4));
  EXPECT_THAT(abandoned(), ElementsAre(9)) << "the run saved lower steps after it";
}

/// Of a random walk of saves, loads and restarts, the latest is always what the job saved last.
TEST_F(Rewinding, TheLatestIsWhatWasSavedLastWhateverHappened) {
  testing::Random random(13);
  start_job();
  std::int64_t step = 0;
  std::set<std::int64_t> saved;
  for (int move = 0; move < 60; ++move) {
    const auto dice = testing::below(random, 4);
    if (dice == 0 && !saved.empty()) {
      const auto to = std::next(saved.begin(),
                                static_cast<std::ptrdiff_t>(testing::below(random, saved.size())));
      step = load_step(*to);
      continue;
    }
    if (dice == 1) start_job();
    if (dice == 1 && !saved.empty()) step = load();
    step += 1 + static_cast<std::int64_t>(testing::below(random, 3));
    save(step);
    saved.insert(step);
    ASSERT_EQ(must(find_latest_checkpoint(base_, *make_runtime())),
              base_ + "/run-" + std::to_string(step))
        << "move " << move;
    ASSERT_EQ(branch().size() + abandoned().size(), saved.size());
  }
}

}  // namespace
}  // namespace cairn
