// SPDX-License-Identifier: Apache-2.0
// The suite that every implementation of RunDirectory passes, called as a run calls it.
#include "cairn/commit/run_directory.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/commit/open.h"
#include "cairn/load/load.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/run/apply_retention.h"
#include "cairn/run/damage_note.h"
#include "cairn/run/discovery.h"
#include "cairn/run/leftovers.h"
#include "cairn/run/mark.h"
#include "cairn/run/removal.h"
#include "cairn/run/run_status.h"
#include "cairn/run/save_request.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::difference;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::must;
using testing::reason;

/// A kind of storage; a row for each.
struct Kind {
  const char* name;
  /// A new run, which lives as long as what it is given with.
  std::string (*run)(const testing::TempDir& dir);
};

std::string path_in(const testing::TempDir& dir) { return dir / "run"; }
std::string keys_in_memory(const testing::TempDir& dir) { return "memory://runs" + dir.path(); }
constexpr Kind kKinds[] = {{"Posix", &path_in}, {"Memory", &keys_in_memory}};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

Tree tree_of(std::int64_t step) {
  testing::Random random(static_cast<std::uint64_t>(step));
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {10, 3})}});
}

std::string name_of(std::int64_t step) { return "run-" + std::to_string(step); }

class RunDirectories : public ::testing::TestWithParam<Kind> {
 protected:
  std::string path_of(const std::string& name) const { return run_ + "/" + name; }

  std::unique_ptr<RunDirectory> open() { return must(open_run(run_, *runtime_)); }

  void save(const std::string& name, std::int64_t step, bool temporary = false,
            const std::string& prefix = "") {
    Mark mark = make_mark(step, temporary, runtime_->clock().wall());
    ++number_;
    mark.lineage = Lineage{.number = number_, .name = name};
    if (number_ > 1) mark.lineage->history = {{1, number_ - 1}};
    SaveInternals marked;
    marked.mark = dump_mark(mark);
    must(save_checkpoint({{prefix, tree_of(step)}}, path_of(name), {}, *runtime_, &marked));
  }

  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const RunEntry& entry : must(list_run(run_, *runtime_))) names.push_back(entry.name);
    return names;
  }

  Result<Removal> remove(const std::string& name, const RemovalOptions& options = {}) {
    return remove_checkpoint(run_, path_of(name), options, *runtime_);
  }

  std::unique_ptr<Checkpointer> job(CheckpointerOptions options = {}) {
    options.base_path = run_;
    return must(Checkpointer::make(std::move(options), runtime_));
  }

  testing::TempDir dir_;
  std::shared_ptr<Runtime> runtime_ = std::make_shared<Runtime>(RuntimeOptions{.threads = 2});
  const std::string run_ = GetParam().run(dir_);
  std::uint64_t number_ = 0;
};

TEST_P(RunDirectories, OneThatIsNotThereHasNothing) {
  EXPECT_EQ(list_run(run_, *runtime_).error().code(), Code::kNotFound);
  EXPECT_FALSE(must(find_latest_checkpoint(run_, *runtime_)));
  EXPECT_FALSE(must(find_owner(run_, *runtime_)));
  EXPECT_FALSE(must(open()->find_owner()));
  EXPECT_EQ(request_save(run_, "", *runtime_).error().code(), Code::kNotFound);
  EXPECT_EQ(unpin(path_of("run-1"), *runtime_).error().code(), Code::kNotFound);
}

TEST_P(RunDirectories, ListsWhatWasSavedNewestFirst) {
  save("run-2", 2);
  save("run-10", 10);
  save("run-11", 11, /*temporary=*/true);
  EXPECT_THAT(names(), ElementsAre("run-11", "run-10", "run-2"));
  const auto entries = must(list_run(run_, *runtime_));
  EXPECT_EQ(entries[0].path, path_of("run-11"));
  EXPECT_TRUE(entries[0].is_temporary);
  EXPECT_TRUE(entries[1].is_of_run());
  EXPECT_EQ(must(find_latest_checkpoint(run_, *runtime_)), path_of("run-11"));
}

TEST_P(RunDirectories, WhatIsRemovedIsGoneAtOnce) {
  save("run-1", 1);
  save("run-2", 2);
  EXPECT_EQ(must(remove("run-2")), Removal::kRemoved);
  EXPECT_THAT(names(), ElementsAre("run-1"));
  EXPECT_EQ(must(remove("run-2")), Removal::kNotThere);
  must(empty_trash(run_, *runtime_));
  EXPECT_EQ(must(empty_trash(run_, *runtime_)), 0u);
  save("run-2", 2);
  EXPECT_THAT(names(), ElementsAre("run-2", "run-1"));
}

TEST_P(RunDirectories, OnlyADirectChildIsRemoved) {
  save("run-1", 1);
  for (const std::string& path : {run_, path_of("a/run-1"), path_of(".hidden"), dir_ / "other/x"})
    EXPECT_EQ(reason(remove_checkpoint(run_, path, {}, *runtime_)), "removal/outside") << path;
}

TEST_P(RunDirectories, FilesOfOthersStay) {
  save("run-1", 1);
  must(must(open_destination(path_of("run-1"), *runtime_))->write("notes.txt", "mine"));
  EXPECT_EQ(must(remove("run-1")), Removal::kOthersStay);
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(must(open()->checkpoint("run-1")->read("notes.txt", 100)), "mine");
  EXPECT_FALSE(must(open()->checkpoint("run-1")->snapshot()).mark);
  save("run-1", 1);
  EXPECT_EQ(must(remove("run-1", {.with_other_files = true})), Removal::kRemoved);
  EXPECT_FALSE(open()->checkpoint("run-1")->list(""));
}

TEST_P(RunDirectories, WhatWeDidNotSaveIsLeftAlone) {
  save("run-1", 1);
  must(must(open_destination(path_of("run-1"), *runtime_))->write("notes.txt", "mine"));
  must(remove("run-1"));
  EXPECT_EQ(reason(remove("run-1")), "removal/foreign");
  EXPECT_EQ(must(open()->checkpoint("run-1")->read("notes.txt", 100)), "mine");
}

TEST_P(RunDirectories, TheGuardIsAskedBeforeARemoval) {
  save("run-1", 1);
  const auto no = []() -> Result<std::shared_ptr<void>> {
    return Error(Code::kFailedPrecondition, "test/no", "no");
  };
  EXPECT_EQ(reason(remove("run-1", {.guard = no})), "test/no");
  EXPECT_THAT(names(), ElementsAre("run-1"));
}

TEST_P(RunDirectories, OneIntoWhichSomebodySavesIsKept) {
  save("run-1", 1);
  const auto attempt = must(open()->checkpoint("run-1")->begin({.prefixes = {"other"}}));
  EXPECT_EQ(reason(remove("run-1")), "removal/busy");
  EXPECT_EQ(reason(promote(path_of("run-1"), *runtime_)), "mark/busy");
}

TEST_P(RunDirectories, APinKeepsACheckpoint) {
  save("run-1", 1, /*temporary=*/true);
  must(pin(path_of("run-1"), "for the paper", *runtime_));
  EXPECT_EQ(must(find_pin(path_of("run-1"), *runtime_)), "for the paper");
  EXPECT_TRUE(must(list_run(run_, *runtime_)).front().pinned);
  const auto removed = remove("run-1", {.with_other_files = true});
  ASSERT_EQ(reason(removed), "removal/pinned");
  EXPECT_THAT(removed.error().message(), HasSubstr("for the paper"));
  EXPECT_TRUE(must(unpin(path_of("run-1"), *runtime_)));
  EXPECT_FALSE(must(unpin(path_of("run-1"), *runtime_)));
  EXPECT_EQ(must(remove("run-1")), Removal::kRemoved);
}

TEST_P(RunDirectories, PromotionMakesATemporaryOnePermanent) {
  save("run-1", 1, /*temporary=*/true);
  EXPECT_TRUE(must(promote(path_of("run-1"), *runtime_)));
  EXPECT_FALSE(must(promote(path_of("run-1"), *runtime_)));
  EXPECT_EQ(must(remove("run-1", {.only_if_temporary = true})), Removal::kNotTemporary);
  EXPECT_FALSE(must(list_run(run_, *runtime_)).front().is_temporary);
}

TEST_P(RunDirectories, ANoteOfDamageHoldsUntilTheNextSave) {
  save("run-1", 1);
  must(note_damage(path_of("run-1"), "a bit flipped", *runtime_));
  EXPECT_EQ(must(list_run(run_, *runtime_)).front().damage, "a bit flipped");
  save("run-1", 1);
  EXPECT_EQ(must(list_run(run_, *runtime_)).front().damage, "");
}

TEST_P(RunDirectories, RulesRemoveAndKeep) {
  for (const int step : {1, 2, 3, 4}) save("run-" + std::to_string(step), step, step == 1);
  must(apply_retention(run_, {.rules = {.keep_last_n = 2}}, *runtime_));
  EXPECT_THAT(names(), ElementsAre("run-4", "run-3"));
  must(apply_retention(run_, {.rules = {.max_bytes = 1}}, *runtime_));
  EXPECT_THAT(names(), ElementsAre("run-4"));
}

TEST_P(RunDirectories, AFloorOfFreeSpaceNeedsAStorageThatKnowsIt) {
  save("run-1", 1);
  const auto verdicts = apply_retention(run_, {.rules = {.min_free_bytes = 1}}, *runtime_);
  EXPECT_EQ(verdicts ? "" : reason(verdicts),
            must(open()->space()) ? "" : "retention/space-unknown");
  EXPECT_THAT(names(), ElementsAre("run-1"));
}

TEST_P(RunDirectories, ARequestWaitsUntilItIsAnswered) {
  save("run-1", 1);
  EXPECT_FALSE(must(find_request(run_, *runtime_)));
  must(request_save(run_, "before maintenance", *runtime_));
  EXPECT_EQ(must(find_request(run_, *runtime_)), "before maintenance");
  RequestWatcher watcher(run_, *runtime_);
  watcher.look();
  EXPECT_TRUE(watcher.is_requested());
  watcher.answered();
  EXPECT_FALSE(must(find_request(run_, *runtime_)));
}

TEST_P(RunDirectories, AWatcherSeesSavesAndBytes) {
  save("run-1", 1);
  const auto attempt = must(open()->checkpoint("run-2")->begin({.prefixes = {""}}));
  RunWatch watch(run_, *runtime_);
  const RunStatus status = must(watch.look());
  EXPECT_EQ(status.path, run_);
  EXPECT_EQ(status.checkpoints, 1u);
  ASSERT_TRUE(status.latest);
  EXPECT_EQ(status.latest->name, "run-1");
  ASSERT_EQ(status.saves.size(), 1u);
  EXPECT_EQ(status.saves[0].path, path_of("run-2"));
  EXPECT_TRUE(status.saves[0].in_flight());
  EXPECT_GT(status.bytes.value_or(0), 24u);
  save("run-3", 3);
  EXPECT_GT(must(watch.look()).bytes.value_or(0), status.bytes.value_or(0));
}

TEST_P(RunDirectories, OneJobOwnsARunAndTheNextIsAnother) {
  const auto owner = must(take_run(run_, {.run_id = "a"}, *runtime_));
  EXPECT_EQ(must(take_run(run_, {.run_id = "b"}, *runtime_)), owner);
  EXPECT_EQ(owner->epoch(), 1u);
  must(owner->hold());
  auto seen = must(find_owner(run_, *runtime_));
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->alive);
  EXPECT_EQ(seen->file.run_id, "a");
}

TEST_P(RunDirectories, AnOwnerThatIsGoneLeavesItsFile) {
  {
    const auto owner = must(take_run(run_, {.run_id = "a"}, *runtime_));
  }
  const auto seen = must(find_owner(run_, *runtime_));
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->alive);
  const auto next = must(take_run(run_, {.run_id = "b"}, *runtime_));
  EXPECT_EQ(next->epoch(), 2u);
  EXPECT_EQ(next->run_id(), "b");
}

TEST_P(RunDirectories, OneThatWasTakenOverSavesNothingAnyMore) {
  const auto owner = must(take_run(run_, {.run_id = "a"}, *runtime_));
  const auto self = must(open_destination(run_, *runtime_));
  const OwnerFile other{"b", 2, "node-2", 4711, "boot", "2026-01-01T00:00:00.000000+00:00"};
  must(self->write(".cairn-owner.json", dump_owner_file(other)));
  const auto held = owner->hold();
  ASSERT_EQ(reason(held), "run/taken-over");
  EXPECT_THAT(held.error().message(), HasSubstr("process 4711 on node-2"));
  const auto back = must(take_run(run_, {.run_id = "c", .take_over = true}, *runtime_));
  EXPECT_NE(back, owner);
  EXPECT_EQ(back->epoch(), 3u);
  must(back->hold());
  must(self->remove(".cairn-owner.json"));
  EXPECT_EQ(reason(back->hold()), "run/owner-gone");
}

TEST_P(RunDirectories, ATrainingJobSavesResumesAndCleans) {
  {
    const auto run = job({.retention = {.keep_last_n = 2}});
    for (const std::int64_t step : {10, 20, 30})
      must(run->save_checkpoint(tree_of(step), name_of(step), {.save = {.step = step}}));
    must(run->wait_until_finished());
    EXPECT_THAT(names(), ElementsAre("run-30", "run-20"));
  }
  const auto resumed = job();
  EXPECT_EQ(difference(tree_of(30), must(resumed->load_checkpoint()).tree), "");
  // It goes back, and on another branch.
  LoadCheckpointOptions earlier{.path = path_of("run-20")};
  earlier.discover_latest = false;
  EXPECT_EQ(difference(tree_of(20), must(resumed->load_checkpoint(earlier)).tree), "");
  must(resumed->save_checkpoint(tree_of(25), name_of(25), {.save = {.step = 25}}));
  must(resumed->wait_until_finished());
  EXPECT_THAT(names(), ElementsAre("run-25", "run-20", "run-30"));
  EXPECT_EQ(must(find_latest_checkpoint(run_, *runtime_)), path_of("run-25"));
}

TEST_P(RunDirectories, TheLatestIsLoadedWholeWhileAJobSavesAndCleans) {
  std::atomic<bool> done = false;
  const auto run = job({.retention = {.keep_last_n = 1}});
  must(run->save_checkpoint(tree_of(1), name_of(1), {.save = {.step = 1}}));
  must(run->wait_until_finished());
  std::thread reader([&] {
    const auto runtime = std::make_shared<Runtime>(RuntimeOptions{.threads = 1});
    const auto other = must(Checkpointer::make({.base_path = run_}, runtime));
    std::int64_t before = 0;
    while (!done) {
      const auto loaded = must(other->load_checkpoint());
      const std::int64_t step = loaded.extras.find("step")->integral().value_or(0);
      EXPECT_EQ(difference(tree_of(step), loaded.tree), "");
      EXPECT_GE(step, before);
      before = step;
    }
  });
  for (std::int64_t step = 2; step <= 40; ++step) {
    must(run->save_checkpoint(tree_of(step), name_of(step), {.save = {.step = step}}));
    must(run->wait_until_finished());
  }
  done = true;
  reader.join();
  EXPECT_THAT(names(), ElementsAre("run-40"));
}

TEST_P(RunDirectories, NothingIsLeftOfASaveThatWasGivenUp) {
  save("run-1", 1);
  {
    const auto attempt = must(open()->checkpoint("run-2")->begin({.prefixes = {""}}));
  }
  must(clean_leftovers(run_, {}, *runtime_));
  EXPECT_TRUE(must(find_leftovers(run_, *runtime_)).empty());
  EXPECT_THAT(names(), ElementsAre("run-1"));
}

INSTANTIATE_TEST_SUITE_P(All, RunDirectories, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace cairn
