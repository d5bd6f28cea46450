// SPDX-License-Identifier: Apache-2.0
// Options of a run's calls, one by one: each is seen in what lies on the disk, or in the answer.
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "cairn/async/background.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/run/discovery.h"
#include "cairn/run/save_request.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/gate.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/temp_dir.h"
#include "cairn/tree/flatten.h"

namespace cairn {
namespace {

using testing::difference;
using testing::must;
using testing::reason;

Tree tree_of(std::uint64_t seed) {
  testing::Random random(seed);
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {10, 3})}});
}

DType type_of(const Tree& tree) {
  return std::get<ShardedArray>(must(flatten(tree)).front().leaf).dtype();
}

class OptionsOfARun : public ::testing::Test {
 protected:
  ~OptionsOfARun() override { wait_for_background(); }
  std::unique_ptr<Checkpointer> make(CheckpointerOptions options = {}) {
    if (options.base_path.empty()) options.base_path = base_;
    return must(Checkpointer::make(std::move(options), runtime_));
  }
  Tree load(const std::string& path) { return must(cairn::load(path, {}, *runtime_)).tree; }
  bool has(const std::string& file) { return std::filesystem::exists(base_ + "/" + file); }

  testing::TempDir dir_;
  const std::string base_ = dir_ / "run";
  testing::Gate gate_;
  std::shared_ptr<Runtime> runtime_ = std::make_shared<Runtime>(RuntimeOptions{.threads = 2});
  const Json extras_ = Json(Json::Object{{"epoch", 3}});
};

TEST_F(OptionsOfARun, NameTheRun) {
  must(make({.run_id = "mine"})->save_checkpoint(tree_of(1), "a", {.save = {.step = 1}}));
  EXPECT_EQ(must(list_run(base_, *runtime_)).front().run_id, "mine");
}

TEST_F(OptionsOfARun, SaveByHandOutsideOfTheRunAndIntoItself) {
  auto run = make();
  must(run->save_checkpoint(tree_of(1), "old", {.save = {.step = 1}, .is_temporary = true}));
  must(run->save_checkpoint(tree_of(2), dir_ / "elsewhere", {.save = {.step = 9}}));
  must(run->save_checkpoint(tree_of(3), base_, {.save = {.step = 3}}));
  must(run->wait_until_finished());
  EXPECT_EQ(must(run->load_checkpoint()).extras.find("step")->integral(), 3);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "elsewhere/metadata.json"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "elsewhere/.cairn-owner.json"));
  EXPECT_TRUE(has("old/metadata.json")) << "what is none of the run replaces nothing in it";
}

TEST_F(OptionsOfARun, TakeADestinationForWhatItLeadsTo) {
  std::filesystem::create_directories(dir_ / "real/run/a");
  std::filesystem::create_directory_symlink(dir_ / "real", dir_ / "link");
  const std::string names[] = {dir_ / "real/run", dir_ / "link/run", dir_ / "link/../link/run"};
  for (const std::string& base : names) {
    for (const std::string& other : names) {
      auto run = make({.base_path = base});
      must(run->save_checkpoint(tree_of(1), other + "/b",
                                {.save = {.step = 1}, .is_temporary = true}));
      must(run->save_checkpoint(tree_of(2), other + "/a/../b/",
                                {.save = {.step = 2}, .is_temporary = true}));
      must(run->save_checkpoint(tree_of(3), other + "/../out", {.save = {.step = 3}}));
      must(run->wait_until_finished());
      EXPECT_EQ(difference(tree_of(2), load(dir_ / "real/run/b")), "");
      EXPECT_EQ(difference(tree_of(3), load(dir_ / "real/out")), "") << "and it replaces nothing";
      must(run->save_checkpoint(tree_of(4), other + "/c", {.save = {.step = 4}}));
      must(run->wait_until_finished());
      EXPECT_FALSE(std::filesystem::exists(dir_ / "real/run/b")) << base << " " << other;
      wait_for_background();  // until nobody here owns the run
    }
  }
}

TEST_F(OptionsOfARun, ReplaceTemporaryCheckpointsThatCallbacksSavedInTheirOwnWay) {
  auto now = system_clock().wall();
  auto run = make({.save_interval = std::chrono::minutes(1), .now = [&] { return now; }});
  const CheckpointCallback saves = [](const std::string& path, const Mesh*, const Json&) {
    std::filesystem::create_directories(path);
    testing::write_file(path + "/model.bin", "theirs");
    return Result<void>();
  };
  for (const int step : {1, 2}) {
    now += std::chrono::minutes(2);
    must(run->on_step(step, {.true_callbacks = {saves}}));
  }
  must(run->wait_until_finished());
  EXPECT_FALSE(has("run-1"));
  EXPECT_TRUE(has("run-2/model.bin"));
}

TEST_F(OptionsOfARun, SayHowATreeIsSavedByHand) {
  auto run = make();
  must(run->save_checkpoint(tree_of(1), "plain", {.save = {.step = 1}}));
  must(run->save_checkpoint(tree_of(1), "a",
                            {.save = {.float_dtype = DType::kBfloat16,
                                      .step = 2,
                                      .extras = extras_,
                                      .write_index = false},
                             .is_temporary = true,
                             .prefix = "model",
                             .metrics = Json(Json::Object{{"loss", 0.5}})}));
  const auto loaded = must(run->load_checkpoint({.load = {.prefix = "model"}}));
  EXPECT_EQ(loaded.extras.find("step")->integral(), 2);
  EXPECT_EQ(loaded.extras.find("epoch")->integral(), 3);
  EXPECT_EQ(loaded.extras.find("is_temporary")->boolean(), true);
  EXPECT_EQ(loaded.extras.find("metrics")->find("loss")->number(), 0.5);
  EXPECT_EQ(type_of(loaded.tree), DType::kBfloat16);
  EXPECT_EQ(type_of(load(base_ + "/plain")), DType::kFloat32);
  EXPECT_TRUE(has("plain/tensorstore_index.json"));
  EXPECT_FALSE(has("a/tensorstore_index.json"));
}

TEST_F(OptionsOfARun, SayHowATreeIsSavedWithoutAStep) {
  auto run = make();
  must(run->save_pytree(tree_of(1), dir_ / "plain", {.prefix = "model"}));
  EXPECT_EQ(type_of(load(dir_ / "plain")), DType::kFloat32);
  bool told = false;
  must(run->save_pytree(tree_of(1), "",
                        {.save = {.float_dtype = DType::kBfloat16,
                                  .extras = extras_,
                                  .write_index = false,
                                  .committed =
                                      [&](const SaveReport&) {
                                        told = true;
                                        return Result<void>();
                                      }},
                         .prefix = "model"}));
  must(run->wait_until_finished());
  EXPECT_TRUE(told);
  const auto loaded =
      must(run->load_pytree({.load = {.prefix = "model"}, .discover_latest = false}));
  EXPECT_EQ(loaded->extras.find("epoch")->integral(), 3);
  EXPECT_EQ(type_of(loaded->tree), DType::kBfloat16);
  EXPECT_FALSE(has("tensorstore_index.json"));
  EXPECT_TRUE(std::filesystem::exists(dir_ / "plain/tensorstore_index.json"));
}

TEST_F(OptionsOfARun, SayHowArraysAreToLieWhenTheyAreLoaded) {
  const Mesh mesh = must(Mesh::over_ranks({{"dp", 2}, {"tp", 3}}, 1));
  const PartitionSpec spec({{"dp"}, {"tp"}});
  const auto rules = must(PartitionRules::make({{"w", spec}}));
  const ShardingTree shardings = must(shardings_on(mesh, {{KeyPath({"w"}), spec}}));
  auto run = make();
  const auto loaded_spec = [&](const std::string& name) {
    const auto loaded = must(cairn::load(base_ + "/" + name, {.mesh = mesh}, *runtime_));
    const auto leaves = must(flatten(loaded.tree));
    return std::get<ShardedArray>(leaves.front().leaf).sharding().named()->spec();
  };
  must(run->save_checkpoint(tree_of(1), "rules",
                            {.save = {.step = 1}, .mesh = mesh, .partition_rules = &rules}));
  EXPECT_EQ(loaded_spec("rules"), spec);
  must(run->save_checkpoint(tree_of(1), "shardings",
                            {.save = {.step = 2}, .shardings = &shardings}));
  EXPECT_EQ(loaded_spec("shardings"), spec);
  must(run->save_pytree(tree_of(1), base_ + "/tree",
                        {.prefix = "model", .mesh = mesh, .partition_rules = &rules}));
  EXPECT_EQ(loaded_spec("tree"), spec);
  must(run->save_checkpoint(tree_of(1), "none", {.save = {.step = 3}}));
  must(run->wait_until_finished());
  EXPECT_EQ(reason(cairn::load(base_ + "/none", {.mesh = mesh}, *runtime_)), "load/no-sharding");
}

TEST_F(OptionsOfARun, MustFitTheTreeThatIsSaved) {
  const Mesh mesh = must(Mesh::over_ranks({{"dp", 4}}, 1));
  const PartitionSpec spec({{"dp"}});
  const auto rules = must(PartitionRules::make({{"w", spec}}));
  const auto others = must(PartitionRules::make({{"bias", spec}}));
  const ShardingTree shardings = must(shardings_on(mesh, {{KeyPath({"v"}), spec}}));
  auto run = make();
  EXPECT_EQ(
      reason(run->save_checkpoint(tree_of(1), "a", {.mesh = mesh, .partition_rules = &rules})),
      "sharding/tree-mismatch");
  EXPECT_EQ(reason(run->save_checkpoint(tree_of(1), "a", {.partition_rules = &others})),
            "rules/no-match");
  EXPECT_EQ(reason(run->save_checkpoint(tree_of(1), "a", {.shardings = &shardings})),
            "sharding/tree-mismatch");
  EXPECT_FALSE(has("a"));
}

TEST_F(OptionsOfARun, SayWhereTheLatestIsLookedForAndHowItsKeysRead) {
  must(make({.base_path = dir_ / "other"})
           ->save_checkpoint(tree_of(2), "a", {.save = {.step = 1}, .prefix = "model"}));
  auto run = make();
  must(run->save_checkpoint(tree_of(1), "a", {.save = {.step = 1}, .prefix = "model"}));
  std::vector<std::string> keys;
  LoadCheckpointOptions options{.load = {.prefix = "model"}, .path = dir_ / "other"};
  options.load.callback = [&](const KeyPath& path, const ShardedArray& array) {
    keys.push_back(path.text());
    return Result<Leaf>(Leaf(array));
  };
  EXPECT_EQ(difference(tree_of(2), must(run->load_checkpoint(options)).tree), "");
  options.structured = true;
  must(run->load_checkpoint(options));
  EXPECT_EQ(keys, (std::vector<std::string>{"w", "model.w"}));
}

TEST_F(OptionsOfARun, GiveBackTheStructureOrNestedDicts) {
  auto run = make();
  const Tree list = Tree::list({tree_of(1), tree_of(2)});
  must(run->save_pytree(list, "", {.save = {.step = 1}, .prefix = "model"}));
  std::vector<std::string> keys;
  LoadCheckpointOptions options{.load = {.prefix = "model"}};
  options.load.callback = [&](const KeyPath& path, const ShardedArray& array) {
    keys.push_back(path.text());
    return Result<Leaf>(Leaf(array));
  };
  EXPECT_EQ(difference(list, must(run->load_pytree(options))->tree), "");
  options.load_treedef = false;
  const Tree dicts = Tree::dict({{"0", tree_of(1)}, {"1", tree_of(2)}});
  EXPECT_EQ(difference(dicts, must(run->load_pytree(options))->tree), "");
  EXPECT_EQ(keys, (std::vector<std::string>{"model.0.w", "model.1.w", "0.w", "1.w"}));
  options.load.like = &list;
  EXPECT_EQ(difference(list, must(run->load_pytree(options))->tree), "");
  options.load.prefix = {};
  EXPECT_EQ(reason(run->load_pytree(options)), "load/no-prefix");
}

TEST_F(OptionsOfARun, LetRequestsBeSeenOrNot) {
  auto watching = make();
  auto blind = make({.base_path = dir_ / "blind", .watch_requests = false});
  for (const std::string& base : {base_, dir_ / "blind"}) {
    std::filesystem::create_directories(base);
    must(request_save(base, "maintenance", *runtime_));
  }
  // Whoever looks every second has looked when somebody else was called twice.
  Mutex mutex;
  CondVar called;
  int calls = 0;
  const auto second = runtime_->ticker().every(std::chrono::seconds(1), [&] {
    MutexLock lock(mutex);
    ++calls;
    called.notify_all();
  });
  {
    MutexLock lock(mutex);
    while (calls < 2) called.wait(mutex);
  }
  EXPECT_FALSE(must(blind->on_step(1, tree_of(1))));
  EXPECT_TRUE(must(watching->on_step(1, tree_of(1))));
  EXPECT_FALSE(must(watching->on_step(2, tree_of(2)))) << "it was answered";
  EXPECT_FALSE(must(find_request(base_, *runtime_)));
}

TEST_F(OptionsOfARun, BoundTheWaitForTheLastSave) {
  runtime_ = std::make_shared<Runtime>(RuntimeOptions{.file_system = gate_.file_system()});
  auto run = make({.signals = must(SignalWatch::make({.save_and_stop = {SIGTERM}})),
                   .stop_timeout = std::chrono::nanoseconds(0)});
  raise(SIGTERM);
  EXPECT_EQ(reason(run->on_step(1, tree_of(1))), "async/deadline");
  EXPECT_TRUE(run->should_stop());
  gate_.open();
  must(run->wait_until_finished());
  EXPECT_TRUE(has("run-1/cairn.json")) << "the save goes on";
}

TEST_F(OptionsOfARun, SayWhatTimeItIsForThePolicies) {
  Clock::Wall now{std::chrono::hours(1000)};
  auto run = make({.save_interval = std::chrono::minutes(10), .now = [&] { return now; }});
  EXPECT_EQ(run->policy().last_save_time(), now);
  EXPECT_FALSE(must(run->on_step(1, tree_of(1))));
  now += std::chrono::minutes(10);
  EXPECT_TRUE(must(run->on_step(2, tree_of(1))));
  EXPECT_EQ(run->policy().last_save_time(), now);
  EXPECT_FALSE(must(run->on_step(3, tree_of(1))));
}

TEST_F(OptionsOfARun, GoOnToEverySave) {
  auto run = make();
  int committed = 0;
  SaveOptions save{.float_dtype = DType::kBfloat16, .extras = extras_};
  save.committed = [&](const SaveReport& report) -> Result<void> {
    committed += report.arrays == 1 ? 1 : 0;
    return {};
  };
  SaveInternals internals{.structures = {{"", "none"}, {"p", "of the caller"}}};
  const Checkpointer::Trees trees = [&]() -> Result<std::vector<NamedTree>> {
    internals.structures.emplace_back("late", "known late");
    return std::vector<NamedTree>{{"late", tree_of(1)}};
  };
  must(run->on_step(1, trees, {.force = true, .save = save}, &internals));
  SaveOptions second = save;
  second.step = 2;
  must(run->save_checkpoint(tree_of(1), "a", {.save = second, .prefix = "p"}, &internals));
  must(run->save_pytree(tree_of(1), dir_ / "b", {.save = save, .prefix = "p"}, &internals));
  must(run->wait_until_finished());
  EXPECT_EQ(committed, 3);
  for (const std::string& path : {base_ + "/run-1", base_ + "/a", dir_ / "b"}) {
    const auto loaded = must(cairn::load(path, {}, *runtime_));
    EXPECT_EQ(loaded.extras.find("epoch")->integral(), 3) << path;
    EXPECT_EQ(type_of(loaded.tree), DType::kBfloat16) << path;
  }
  EXPECT_EQ(testing::read_file(base_ + "/run-1/late_structure.json"), "known late");
  EXPECT_EQ(testing::read_file(base_ + "/a/p_structure.json"), "of the caller");
  EXPECT_EQ(testing::read_file(dir_ / "b/p_structure.json"), "of the caller");
}

TEST_F(OptionsOfARun, AskTheLibrarysGuardBeforeTheRuns) {
  auto run = make();
  std::string asked;
  const SaveInternals internals{.guard = [&]() -> Result<std::shared_ptr<void>> {
    asked += "asked";
    return Error(Code::kCancelled, "here/given-up", "never mind");
  }};
  const auto stopped =
      must(run->save_checkpoint(tree_of(1), "a", {.save = {.step = 1}}, &internals));
  EXPECT_EQ(reason(stopped.wait()), "here/given-up");
  EXPECT_EQ(asked, "asked");
}

TEST_F(OptionsOfARun, ForceASaveThatNobodyAskedFor) {
  auto run = make();
  EXPECT_FALSE(must(run->on_step(1, tree_of(1))));
  EXPECT_TRUE(must(run->on_step(1, tree_of(1), {.force = true})));
  EXPECT_TRUE(must(run->on_step(1, tree_of(2), {.force = true}))) << "and again";
  EXPECT_EQ(difference(tree_of(2), must(run->load_checkpoint()).tree), "");
}

// Errors of saves that nobody waits for. ----------------------------------------------------------

TEST_F(OptionsOfARun, ErrorsReachWhoeverComesFirst) {
  using Call = std::function<Result<void>(Checkpointer&)>;
  const auto dropped = [](auto result) {
    return result ? Result<void>() : Result<void>(std::move(result).error());
  };
  const Call calls[] = {
      [&](Checkpointer& run) { return dropped(run.on_step(11, tree_of(1))); },
      [&](Checkpointer& run) { return dropped(run.on_step(20, tree_of(1))); },
      [&](Checkpointer& run) { return dropped(run.save_checkpoint(tree_of(1), "by-hand")); },
      [](Checkpointer& run) { return run.wait_until_finished(); },
      [](Checkpointer& run) { return run.check_for_errors(); },
  };
  for (const Call& call : calls) {
    auto run = make({.step_policies = {{.every = 10}}});
    const CheckpointCallback fails = [](const std::string&, const Mesh*, const Json&) {
      return Result<void>(Error(Code::kInternal, "here/failed", "as if"));
    };
    const auto saving = must(run->on_step(10, tree_of(1), {.true_callbacks = {fails}}));
    EXPECT_EQ(reason(saving->wait()), "here/failed");
    EXPECT_EQ(reason(call(*run)), "here/failed");
    must(run->wait_until_finished());
    EXPECT_EQ(reason(saving->wait()), "here/failed") << "the handle keeps it";
  }
}

TEST_F(OptionsOfARun, ASignalToOneRankIsASignalToAll) {
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    const auto runtime =
        std::make_shared<Runtime>(RuntimeOptions{.threads = 1, .coordinator = &coordinator});
    // A signal has one watch in a process: each rank has signals of its own.
    const int first = SIGRTMIN + 2 * coordinator.rank();
    const auto run = must(Checkpointer::make(
        {.base_path = base_,
         .signals = must(SignalWatch::make({.save = {first}, .save_and_stop = {first + 1}})),
         .agreement_share = 1},
        runtime));
    EXPECT_FALSE(must(run->on_step(1, tree_of(1))));
    if (coordinator.rank() == 2) raise(first);
    EXPECT_TRUE(must(run->on_step(2, tree_of(2))));
    EXPECT_FALSE(run->should_stop());
    EXPECT_FALSE(must(run->on_step(3, tree_of(3)))) << "it was answered";
    if (coordinator.rank() == 1) raise(first + 1);
    EXPECT_TRUE(must(run->on_step(4, tree_of(4))));
    EXPECT_TRUE(run->should_stop());
    EXPECT_FALSE(must(run->on_step(5, tree_of(5))));
  });
}

TEST_F(OptionsOfARun, ACallbackThatFailsOnOneRankFailsTheSaveOnAll) {
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    const auto runtime =
        std::make_shared<Runtime>(RuntimeOptions{.threads = 1, .coordinator = &coordinator});
    const auto run =
        must(Checkpointer::make({.base_path = base_, .step_policies = {{.every = 1}}}, runtime));
    const CheckpointCallback saves = [&](const std::string& path, const Mesh*,
                                         const Json&) -> Result<void> {
      must(run->manager().save_tree(tree_of(1), path));
      if (coordinator.rank() != 1) return {};
      return Error(Code::kInternal, "here/failed", "as if");
    };
    const auto failed = run->on_step(1, {.true_callbacks = {saves}});
    EXPECT_EQ(reason(failed), "ranks/failed");
    EXPECT_NE(failed.error().to_string().find("rank 1"), std::string::npos);
    EXPECT_EQ(reason(run->load_checkpoint()), "run/no-checkpoint") << "it has no mark";
  });
}

}  // namespace
}  // namespace cairn
