// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/checkpointer.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "cairn/async/background.h"
#include "cairn/run/apply_retention.h"
#include "cairn/run/discovery.h"
#include "cairn/run/mark.h"
#include "cairn/run/ownership.h"
#include "cairn/run/save_request.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/gate.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using namespace std::chrono_literals;
using testing::difference;
using testing::must;
using testing::reason;

Tree tree_of(std::int64_t seed) {
  testing::Random random(static_cast<std::uint64_t>(seed));
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {10, 3})}});
}

/// Says another time of day than the machine's; whoever waits for a lock does so in real time.
class WallAhead final : public Clock {
 public:
  Wall wall() const override { return system_clock().wall() + ahead_.load(); }
  Mono monotonic() const override { return system_clock().monotonic(); }
  void pause(std::chrono::nanoseconds span) override { system_clock().pause(span); }
  void advance(std::chrono::seconds span) { ahead_ = ahead_.load() + span; }

 private:
  std::atomic<std::chrono::seconds> ahead_ = std::chrono::seconds(0);
};

class Run : public ::testing::Test {
 protected:
  ~Run() override { wait_for_background(); }  // which still uses clock and log
  std::shared_ptr<Runtime> make_runtime(RuntimeOptions options = {}) {
    options.threads = 2;
    options.clock = &clock_;
    options.log = [this](const LogEntry& entry) {
      MutexLock lock(mutex_);
      log_.push_back(std::string(entry.event) + ": " + entry.message);
    };
    return std::make_shared<Runtime>(std::move(options));
  }
  std::unique_ptr<Checkpointer> make(CheckpointerOptions options) {
    options.base_path = base_;
    return must(Checkpointer::make(std::move(options), make_runtime()));
  }
  std::vector<std::string> logged(const std::string& event) {
    MutexLock lock(mutex_);
    std::vector<std::string> found;
    std::ranges::copy_if(log_, std::back_inserter(found),
                         [&](const std::string& line) { return line.starts_with(event + ":"); });
    return found;
  }
  std::set<std::string> names() {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(base_)) {
      if (!entry.path().filename().string().starts_with('.')) found.insert(entry.path().filename());
    }
    return found;
  }
  std::string mark_text(const std::string& name) {
    std::ifstream in(base_ + "/" + name + "/metadata.json");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Mark mark_of(const std::string& name) { return must(parse_mark(mark_text(name))); }

  void damage(const std::string& file) {
    std::fstream(base_ + "/" + file, std::ios::in | std::ios::out | std::ios::binary) << "damaged";
  }

  testing::TempDir dir_;
  const std::string base_ = dir_ / "run";
  WallAhead clock_;
  Mutex mutex_;
  std::vector<std::string> log_ CAIRN_GUARDED_BY(mutex_);
};

TEST_F(Run, SavesWhenPoliciesSaySo) {
  auto run = make({.step_policies = {{.every = 2, .until = 4}, {.every = 5}}});
  std::vector<std::int64_t> saved;
  for (std::int64_t step = 0; step <= 12; ++step) {
    const bool is_time = must(run->is_time(step));
    const bool has_saved = must(run->on_step(step, tree_of(step))).has_value();
    EXPECT_EQ(is_time, has_saved) << step;
    if (has_saved) saved.push_back(step);
  }
  EXPECT_FALSE(must(run->is_time(11)));
  EXPECT_TRUE(must(run->is_time(11, true)));
  must(run->wait_until_finished());
  EXPECT_EQ(saved, (std::vector<std::int64_t>{2, 4, 5, 10}));
  EXPECT_EQ(names(), (std::set<std::string>{"run-2", "run-4", "run-5", "run-10"}));
  const auto latest = must(run->load_checkpoint());
  EXPECT_EQ(difference(tree_of(10), latest.tree), "");
  EXPECT_EQ(latest.extras.find("step")->integral(), 10);
}

TEST_F(Run, MakesTreesOnlyWhenTheyAreSaved) {
  auto run = make({.step_policies = {{.every = 5}}});
  std::vector<std::int64_t> made;
  for (std::int64_t step = 1; step <= 10; ++step) {
    must(run->on_step(step, [&] {
      made.push_back(step);
      return tree_of(step);
    }));
  }
  EXPECT_EQ(made, (std::vector<std::int64_t>{5, 10}));
  EXPECT_EQ(difference(tree_of(10), must(run->load_checkpoint()).tree), "");
  const auto fails = [] { return Result<Tree>(Error(Code::kInternal, "here/no-tree", "none")); };
  EXPECT_EQ(reason(run->on_step(15, fails)), "here/no-tree");
  must(run->on_step(
      20, [] { return std::vector<NamedTree>{{"model", tree_of(1)}, {"tx", tree_of(2)}}; }));
  EXPECT_EQ(difference(tree_of(2), must(run->load_checkpoint({.load = {.prefix = "tx"}})).tree),
            "");
}

TEST_F(Run, TellsHowFarASaveIs) {
  auto run = make({.step_policies = {{.every = 1}}});
  std::string phase;
  std::uint64_t written = 0;
  SaveOptions save;
  save.progress = [&](std::uint64_t done, std::uint64_t) { written = done; };
  const SaveInternals internals{.phase = [&](std::string_view now) { phase = now; }};
  const Checkpointer::Trees trees = [] { return std::vector<NamedTree>{{"", tree_of(1)}}; };
  must(run->on_step(1, trees, {.save = save}, &internals));
  must(run->wait_until_finished());
  EXPECT_EQ(written, 120U);
  EXPECT_EQ(phase, "committing");
}

TEST_F(Run, ReplacesTemporarySavesAndKeepsPromotedOnes) {
  auto run = make({.save_interval = 1min, .step_policies = {{.every = 100}}});
  const auto later = [&](std::int64_t step) {
    clock_.advance(61s);
    must(run->on_step(step, tree_of(step)));
    must(run->wait_until_finished());
  };
  later(1);
  EXPECT_TRUE(mark_of("run-1").is_temporary);
  later(2);
  EXPECT_EQ(names(), std::set<std::string>{"run-2"});
  EXPECT_TRUE(must(promote(
      base_ + "/run-2", run->manager().runtime() ? *run->manager().runtime() : *make_runtime())));
  later(3);
  EXPECT_EQ(names(), (std::set<std::string>{"run-2", "run-3"}));
  later(100);
  EXPECT_EQ(names(), (std::set<std::string>{"run-2", "run-100"}));
  EXPECT_FALSE(mark_of("run-100").is_temporary);
}

TEST_F(Run, RemovesWhatEarlierRunsLeft) {
  {
    auto old = make({.save_interval = 1min});
    for (std::int64_t step = 1; step <= 2; ++step) {
      clock_.advance(61s);
      must(old->save_checkpoint(tree_of(step), "run-" + std::to_string(step),
                                {.save = {.step = step}, .is_temporary = true}));
    }
    must(old->wait_until_finished());
  }
  auto keeps = make({.step_policies = {{.every = 1}}, .delete_old_temp_checkpoints = false});
  must(keeps->on_step(3, tree_of(3)));
  must(keeps->wait_until_finished());
  EXPECT_TRUE(names().contains("run-2"));
  keeps.reset();
  auto run = make({.step_policies = {{.every = 1}}});
  must(run->on_step(4, tree_of(4)));
  must(run->wait_until_finished());
  EXPECT_EQ(names(), (std::set<std::string>{"run-3", "run-4"}));
}

TEST_F(Run, AppliesRetentionAfterEachSave) {
  auto run = make({.step_policies = {{.every = 1}}, .retention = {.keep_last_n = 2}});
  for (std::int64_t step = 1; step <= 5; ++step) must(run->on_step(step, tree_of(step)));
  must(run->wait_until_finished());
  EXPECT_EQ(names(), (std::set<std::string>{"run-4", "run-5"}));
  EXPECT_FALSE(std::filesystem::exists(base_ + "/.cairn-trash")) << "and the bytes are gone";
}

TEST_F(Run, SaysWhatRetentionCouldNotRemove) {
  auto run = make({.step_policies = {{.every = 1}}, .retention = {.keep_last_n = 1}});
  must(run->on_step(1, tree_of(1)));
  must(run->wait_until_finished());
  std::ofstream(base_ + "/run-1/tensorstore_index.json") << R"({"format": "somebody's"})";
  must(run->on_step(2, tree_of(2)));
  must(run->wait_until_finished());
  ASSERT_EQ(logged("checkpointer/cleanup").size(), 1U);
  EXPECT_NE(logged("checkpointer/cleanup")[0].find("run-1: "), std::string::npos);
}

TEST_F(Run, KeepsTheBestByAMetric) {
  auto run = make({.step_policies = {{.every = 1}},
                   .retention = {.best_k = 1, .metric = "loss", .mode = MetricMode::kMin}});
  const double losses[] = {3.0, 1.0, 2.0};
  for (std::int64_t step = 1; step <= 3; ++step) {
    must(run->on_step(step, tree_of(step),
                      {.metrics = Json(Json::Object{{"loss", losses[step - 1]}})}));
  }
  must(run->wait_until_finished());
  EXPECT_EQ(names(), (std::set<std::string>{"run-2", "run-3"})) << "the best, and the latest";
}

TEST_F(Run, CallsBackOnceAfterTheCommitWithWhatTheMarkSays) {
  auto run = make({.step_policies = {{.every = 5}}});
  std::vector<std::string> calls;
  const CheckpointCallback note = [&](const std::string& path, const Mesh* mesh,
                                      const Json& metadata) -> Result<void> {
    EXPECT_TRUE(std::filesystem::exists(path + "/metadata.json"));
    EXPECT_EQ(mesh->axes().size(), 1U);
    EXPECT_EQ(metadata.find("loss")->number(), 0.5);
    EXPECT_EQ(metadata.find("is_temporary")->boolean(), false);
    calls.push_back(path + " " + std::to_string(*metadata.find("step")->integral()));
    return {};
  };
  {
    const Mesh mesh = must(Mesh::over_ranks({{"x", 1}}, 1));
    must(run->on_step(5, tree_of(5),
                      {.mesh = &mesh,
                       .true_callbacks = {note},
                       .save = {.extras = Json::Object{{"loss", 0.5}, {"step", "mine"}}}}));
  }
  must(run->wait_until_finished());
  EXPECT_EQ(calls, std::vector<std::string>{base_ + "/run-5 5"});
  EXPECT_EQ(mark_text("run-5").find("mine"), std::string::npos) << "a mark has one step, the run's";
  const auto loaded = must(run->load_checkpoint());
  EXPECT_EQ(*loaded.extras.find("step")->text(), "mine") << "the user's members win";
  EXPECT_EQ(loaded.extras.find("loss")->number(), 0.5);
}

TEST_F(Run, LetsCallbacksDoTheWholeSave) {
  auto run = make({.step_policies = {{.every = 5}}});
  const CheckpointCallback saves = [&](const std::string& path, const Mesh*,
                                       const Json&) -> Result<void> {
    CAIRN_TRY(run->manager().save_pytree(tree_of(1), path, {.prefix = "model"}));
    CAIRN_TRY(run->manager().save_pytree(tree_of(2), path, {.prefix = "tx"}));
    std::ofstream(path + "/config.json") << "{}";
    return {};
  };
  ASSERT_TRUE(must(run->on_step(5, {.true_callbacks = {saves}})));
  EXPECT_EQ(mark_of("run-5").step, 5);
  EXPECT_EQ(run->policy().last_save_step(), 5);
  const auto loaded = must(run->load_pytree({.load = {.prefix = "tx"}}));
  EXPECT_EQ(difference(tree_of(2), loaded->tree), "");
  EXPECT_TRUE(std::filesystem::exists(base_ + "/run-5/config.json"));
}

TEST_F(Run, SavesAndLoadsByHand) {
  auto run = make({});
  bool called = false;
  const auto committed = [&](const SaveReport&) {
    called = true;
    return Result<void>();
  };
  must(run->save_checkpoint(tree_of(1), "mine", {.save = {.step = 7, .committed = committed}}));
  EXPECT_EQ(run->policy().last_save_step(), 7);
  must(run->save_pytree(tree_of(2), "", {.save = {.step = 8}, .prefix = "model"}));
  must(run->wait_until_finished());
  EXPECT_TRUE(called);
  EXPECT_EQ(names(), (std::set<std::string>{"mine", "run-8"}));
  EXPECT_EQ(reason(run->save_checkpoint(tree_of(1), "../out")), "checkpointer/destination");
  EXPECT_EQ(run->save_checkpoint(tree_of(1), "x", {.structured = true}).error().reason(),
            "save/no-prefix");
  EXPECT_EQ(run->load_checkpoint({.structured = true}).error().reason(), "load/no-prefix");
  const auto named =
      must(run->load_checkpoint({.path = base_ + "/mine", .discover_latest = false}));
  EXPECT_EQ(difference(tree_of(1), named.tree), "");
  const auto cast = must(run->load_checkpoint(
      {.load = {.prefix = "model", .dtype = DType::kBfloat16}, .structured = true}));
  EXPECT_EQ(cast.report.cast.size(), 1U);
}

TEST_F(Run, SavesAPytreeWithoutAStepInItself) {
  auto run = make({});
  EXPECT_FALSE(must(run->load_pytree({.load = {.prefix = "model"}, .discover_raise = false})));
  EXPECT_EQ(run->load_pytree({.load = {.prefix = "model"}}).error().reason(), "run/no-checkpoint");
  must(run->save_pytree(tree_of(3), "", {.prefix = "model"}));
  const auto loaded =
      must(run->load_pytree({.load = {.prefix = "model"}, .discover_raise = false}));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(difference(tree_of(3), loaded->tree), "");
  EXPECT_FALSE(std::filesystem::exists(base_ + "/metadata.json"));
  must(run->save_pytree(tree_of(4), dir_ / "elsewhere", {.prefix = "model"}));
  must(run->wait_until_finished());
  EXPECT_TRUE(std::filesystem::exists(dir_ / "elsewhere/cairn.json"));
}

TEST_F(Run, FallsBackToAnOlderOneOnlyIfToldSo) {
  auto run = make({.step_policies = {{.every = 1}}});
  for (std::int64_t step = 1; step <= 3; ++step) must(run->on_step(step, tree_of(step)));
  must(run->wait_until_finished());
  damage("run-3/w/0.0");
  EXPECT_EQ(run->load_checkpoint().error().code(), Code::kCorrupt);
  const auto loaded = must(run->load_checkpoint({.fallback = true}));
  EXPECT_EQ(difference(tree_of(2), loaded.tree), "");
  ASSERT_EQ(loaded.report.notes.size(), 1U);
  EXPECT_NE(loaded.report.notes[0].find("run-3 was passed over"), std::string::npos);
  EXPECT_EQ(logged("checkpointer/fallback").size(), 1U);
}

TEST_F(Run, RemembersWhatItsLoadsFoundDamaged) {
  auto run = make({.step_policies = {{.every = 1}}});
  for (std::int64_t step = 1; step <= 3; ++step) must(run->on_step(step, tree_of(step)));
  must(run->wait_until_finished());
  damage("run-2/w/0.0");
  damage("run-3/w/0.0");
  EXPECT_EQ(run->load_checkpoint().error().code(), Code::kCorrupt);
  const auto at_2 = run->load_checkpoint({.path = base_ + "/run-2", .discover_latest = false});
  EXPECT_EQ(at_2.error().code(), Code::kCorrupt);
  must(apply_retention(base_, {.rules = {.keep_last_n = 1}}, *make_runtime()));
  EXPECT_TRUE(run->load_checkpoint({.path = base_ + "/run-1", .discover_latest = false}));
}

TEST_F(Run, TellsAFirstStartFromALoss) {
  auto run = make({.step_policies = {{.every = 1}}});
  EXPECT_FALSE(must(run->load_checkpoint_if_any())) << "not even a directory";
  std::filesystem::create_directories(base_ + "/notes");
  std::ofstream(base_ + "/metadata.json") << R"({"dataset": "somebody's"})";
  EXPECT_FALSE(must(run->load_checkpoint_if_any())) << "nothing of a run's";
  EXPECT_EQ(reason(run->load_checkpoint()), "run/no-checkpoint");
  EXPECT_EQ(reason(run->load_checkpoint_if_any({.structured = true})), "load/no-prefix");

  must(run->on_step(1, tree_of(1)));
  EXPECT_EQ(difference(tree_of(1), must(run->load_checkpoint_if_any())->tree), "");
  damage("run-1/w/0.0");
  EXPECT_EQ(reason(run->load_checkpoint_if_any()), "load/checksum");
  EXPECT_EQ(reason(run->load_checkpoint_if_any({.fallback = true})), "run/no-good-checkpoint");
  std::filesystem::remove(base_ + "/run-1/w/0.0");
  EXPECT_EQ(reason(run->load_checkpoint_if_any()), "run/no-good-checkpoint");
  EXPECT_EQ(reason(run->load_checkpoint()), "run/no-good-checkpoint");
  damage("run-1/cairn.json");
  EXPECT_EQ(reason(run->load_checkpoint_if_any()), "run/no-good-checkpoint");
}

TEST_F(Run, StartsAfreshAfterAFirstSaveThatDidNotFinish) {
  std::filesystem::create_directories(base_ + "/run-1/.cairn-0123456789abcdef0123456789abcdef");
  EXPECT_FALSE(must(make({})->load_checkpoint_if_any()));
  std::ofstream(base_ + "/run-1/.cairn-0123456789abcdef0123456789abcdef/attempt.json")
      << R"({"attempt": "0123456789abcdef0123456789abcdef", "host": "h", "process": 1,
             "boot_id": "b", "started": "2026-01-01T00:00:00", "ranks": 1, "run_id": "",
             "generation": 0, "mark_sha256": null, "prefixes": []})";
  std::ofstream(base_ + "/run-1/metadata.json") << R"({"step": 1})";
  EXPECT_FALSE(must(make({})->load_checkpoint_if_any())) << "a client had marked it by itself";
  EXPECT_EQ(logged("discovery/skipped").size(), 1U);
}

TEST_F(Run, NoticesThatTheStepMovedAndTheBytesDidNot) {
  auto run = make({.step_policies = {{.every = 1}}});
  must(run->on_step(1, tree_of(1)));
  must(run->on_step(2, tree_of(2)));
  must(run->wait_until_finished());
  EXPECT_TRUE(logged("checkpointer/unchanged").empty());
  must(run->on_step(3, tree_of(2)));
  must(run->wait_until_finished());
  EXPECT_EQ(logged("checkpointer/unchanged").size(), 1U);
}

TEST_F(Run, KeepsItsNameWhenItIsResumed) {
  for (const std::int64_t step : {10, 20}) {
    auto run = make({.step_policies = {{.every = 10}}});
    must(run->load_checkpoint_if_any());
    must(run->on_step(step, tree_of(step)));
    must(run->wait_until_finished());
    run.reset();
    wait_for_background();  // until nobody here owns the run
  }
  const auto entries = must(list_run(base_, *make_runtime()));
  EXPECT_EQ(entries.at(0).run_id, entries.at(1).run_id);
  EXPECT_TRUE(logged("checkpointer/rewound").empty()) << "it went on with what it loaded";
}

TEST_F(Run, CannotCommitOnceItWasTakenOver) {
  auto run = make({.step_policies = {{.every = 1}}});
  must(run->on_step(1, tree_of(1)));
  must(run->wait_until_finished());
  // Another process, as far as the files say.
  std::ofstream(base_ + "/.cairn-owner.json")
      << dump_owner_file({.run_id = "other",
                          .epoch = 99,
                          .host = "elsewhere",
                          .process = 1,
                          .boot_id = "b",
                          .time = "2026-01-01T00:00:00+00:00"});
  const auto saving = must(run->on_step(2, tree_of(2)));
  const auto refused = saving->wait();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "run/taken-over");
  EXPECT_EQ(difference(tree_of(1), must(run->load_checkpoint()).tree), "");
  EXPECT_EQ(run->on_step(3, tree_of(3)).error().reason(), "run/taken-over") << "told once";
}

TEST_F(Run, SavesWhenSomebodyAsks) {
  auto run = make({.step_policies = {{.every = 1000}}, .watch_requests = false});
  std::filesystem::create_directories(base_);
  const auto runtime = make_runtime();
  RequestWatcher watcher(base_, *runtime);
  EXPECT_FALSE(watcher.is_requested());
  must(request_save(base_, "maintenance", *runtime));
  EXPECT_EQ(must(find_request(base_, *runtime)), "maintenance");
  watcher.look();
  EXPECT_TRUE(watcher.is_requested());
  watcher.answered();
  EXPECT_FALSE(watcher.is_requested());
  EXPECT_FALSE(must(find_request(base_, *runtime)));
}

TEST_F(Run, SavesOnASignalAndStops) {
  const std::shared_ptr<SignalWatch> signals =
      must(SignalWatch::make({.save = {SIGUSR1}, .save_and_stop = {SIGTERM}}));
  auto run = make({.step_policies = {{.every = 1000}}, .signals = signals});
  EXPECT_FALSE(must(run->on_step(1, tree_of(1))));
  raise(SIGUSR1);
  EXPECT_TRUE(must(run->on_step(2, tree_of(2))));
  EXPECT_FALSE(must(run->on_step(3, tree_of(3)))) << "once";
  EXPECT_FALSE(run->should_stop());
  raise(SIGTERM);
  const auto last = must(run->on_step(4, tree_of(4)));
  EXPECT_TRUE(last->done());
  EXPECT_TRUE(run->should_stop());
  EXPECT_EQ(SignalWatch::make({.save = {SIGUSR1}}).error().reason(), "signals/taken");
  EXPECT_EQ(SignalWatch::make({.save = {SIGKILL}}).error().reason(), "signals/unknown");
}

TEST_F(Run, StopsOnASignalThatComesWhileASaveBegins) {
  auto run = make({.step_policies = {{.every = 10}},
                   .signals = must(SignalWatch::make({.save_and_stop = {SIGTERM}}))});
  must(run->on_step(10, [] {
    raise(SIGTERM);
    return std::vector<NamedTree>{{"", tree_of(10)}};
  }));
  EXPECT_FALSE(run->should_stop());
  EXPECT_TRUE(must(run->on_step(11, tree_of(11)))->done());
  EXPECT_TRUE(run->should_stop());
}

TEST_F(Run, StopsAfterASaveOfCallbacksToo) {
  auto run = make({.signals = must(SignalWatch::make({.save_and_stop = {SIGTERM}}))});
  raise(SIGTERM);
  const CheckpointCallback saves = [&](const std::string& path, const Mesh*, const Json&) {
    must(run->manager().save_tree(tree_of(1), path));
    return Result<void>();
  };
  EXPECT_TRUE(must(run->on_step(1, {.true_callbacks = {saves}})));
  EXPECT_TRUE(run->should_stop());
}

TEST_F(Run, HidesAtOnceWhatIsToBeRemoved) {
  auto run = make({.step_policies = {{.every = 1}}});
  must(run->on_step(1, tree_of(1)));
  must(run->on_step(2, tree_of(2)));
  std::ofstream(base_ + "/run-2/config.json") << "{}";
  must(run->queue_checkpoint_removal(base_ + "/run-2"));
  EXPECT_EQ(names(), std::set<std::string>{"run-1"});
  must(run->wait_until_finished());
  EXPECT_FALSE(std::filesystem::exists(base_ + "/.cairn-trash"));
}

TEST_F(Run, LosesNothingWhenItIsDropped) {
  make({.step_policies = {{.every = 1}}})->on_step(1, tree_of(1)).ignore_error("seen below");
  wait_for_background();
  EXPECT_EQ(difference(tree_of(1), must(make({})->load_checkpoint()).tree), "");
}

TEST_F(Run, IsDecidedByRankZeroForAll) {
  // Every rank has a clock of its own, and only rank 0's says that it is time.
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    WallAhead clock;
    const auto runtime = std::make_shared<Runtime>(
        RuntimeOptions{.threads = 1, .coordinator = &coordinator, .clock = &clock});
    const auto run = must(Checkpointer::make(
        {.base_path = base_, .save_interval = 1min, .agreement_share = 1}, runtime));
    EXPECT_FALSE(must(run->on_step(1, tree_of(1))));
    if (coordinator.rank() == 0) clock.advance(61s);
    EXPECT_TRUE(must(run->on_step(2, tree_of(2))));
    must(run->wait_until_finished());
    EXPECT_EQ(difference(tree_of(2), must(run->load_checkpoint()).tree), "");
  });
}

TEST(CheckpointerOptions, APlaceElsewhereIsNoDirectoryHere) {
  const auto shared = std::make_shared<Runtime>(RuntimeOptions{.threads = 1});
  Runtime& runtime = *shared;
  EXPECT_EQ(testing::reason(Checkpointer::make({.base_path = "gs://bucket/ckpts"}, shared)),
            "uri/not-local");
  for (const auto& reason : {testing::reason(list_run("s3://bucket/ckpts", runtime)),
                             testing::reason(find_latest_checkpoint("s3://bucket/ckpts", runtime)),
                             testing::reason(apply_retention("s3://bucket/ckpts", {}, runtime)),
                             testing::reason(promote("s3://bucket/ckpts", runtime)),
                             testing::reason(pin("s3://bucket/ckpts", "", runtime)),
                             testing::reason(request_save("s3://bucket/ckpts", "", runtime)),
                             testing::reason(take_run("s3://bucket/ckpts", {}, runtime))})
    EXPECT_EQ(reason, "uri/not-local");
}

TEST(CheckpointerOptions, AreCheckedAtOnce) {
  const auto runtime = std::make_shared<Runtime>(RuntimeOptions{.threads = 1});
  EXPECT_EQ(Checkpointer::make({.base_path = "/x", .agreement_share = 0}, runtime).error().reason(),
            "checkpointer/agreement-share");
  EXPECT_EQ(Checkpointer::make({.base_path = "/x", .step_policies = {{.every = 0}}}, runtime)
                .error()
                .reason(),
            "policy/bad-interval");
  EXPECT_EQ(Checkpointer::make({.base_path = "/x", .retention = {.keep_last_n = 0}}, runtime)
                .error()
                .reason(),
            "retention/bad-rule");
}

}  // namespace
}  // namespace cairn
