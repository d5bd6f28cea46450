// SPDX-License-Identifier: Apache-2.0
// Retention and leftovers on real directories.
#include "cairn/run/apply_retention.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/commit/posix/file_rank_board.h"
#include "cairn/run/leftovers.h"
#include "cairn/run/mark.h"
#include "cairn/run/removal.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/fixtures.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

namespace files = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::must;
using testing::reason;
using testing::TempDir;

class Retaining : public ::testing::Test {
 protected:
  std::string save(int step, bool temporary = false) {
    const std::string name = "run-" + std::to_string(step);
    const std::string path = dir_ / name;
    const auto number = static_cast<std::uint64_t>(step);
    Mark mark = make_mark(step, temporary, runtime_.clock().wall());
    mark.lineage = Lineage{.number = number, .history = {{0, number - 1}}, .name = name};
    const SaveInternals marked{.mark = dump_mark(mark)};
    const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {100, step}))}});
    must(save_checkpoint({{"model", tree}}, path, {}, runtime_, &marked));
    return path;
  }

  std::vector<std::string> apply(const RetentionOptions& options) {
    std::vector<std::string> told;
    for (const Verdict& verdict : must(apply_retention(dir_.path(), options, runtime_)))
      told.push_back((verdict.keep ? "+" : "-") + verdict.entry.run.name + " " + verdict.rule);
    return told;
  }

  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const RunEntry& entry : must(list_run(dir_.path(), runtime_))) found.push_back(entry.name);
    return found;
  }

  TempDir dir_;
  Runtime runtime_;
};

TEST_F(Retaining, RemovesWhatThePlanSaysUnlessItIsDry) {
  for (const int step : {1, 2, 3}) save(step);
  const RetentionRules rules{.keep_last_n = 1};
  const auto planned = ElementsAre("+run-3 latest", "-run-2 unwanted", "-run-1 unwanted");
  EXPECT_THAT(apply({.rules = rules, .dry_run = true}), planned);
  EXPECT_THAT(names(), ElementsAre("run-3", "run-2", "run-1"));
  EXPECT_THAT(apply({.rules = rules}), planned);
  EXPECT_THAT(names(), ElementsAre("run-3"));
  EXPECT_EQ(must(empty_trash(dir_.path(), runtime_)), 2u);
}

TEST_F(Retaining, TheLatestGoodOneIsTheOneWhoseFilesAreThere) {
  for (const int step : {1, 2, 3}) save(step);
  files::remove_all(dir_ / "run-3/model/w");
  EXPECT_THAT(apply({.rules = {.keep_last_n = 1}}),
              ElementsAre("+run-3 damaged", "+run-2 latest", "-run-1 unwanted"));
}

TEST_F(Retaining, SaysWhatCouldNotBeRemoved) {
  save(1);
  save(2);
  testing::write_file(dir_ / "run-1/tensorstore_index.json", "somebody's");
  const auto verdicts = must(apply_retention(dir_.path(), {.rules = {.keep_last_n = 1}}, runtime_));
  EXPECT_TRUE(verdicts[1].keep);
  EXPECT_STREQ(verdicts[1].rule, "not-removed");
  EXPECT_THAT(verdicts[1].reason, HasSubstr("left alone"));
}

TEST_F(Retaining, AsksTheOwnerForEachRemoval) {
  save(1);
  save(2);
  const CommitGuard refuse = []() -> Result<std::shared_ptr<void>> {
    return Error(Code::kFailedPrecondition, "run/taken-over", "no");
  };
  EXPECT_THAT(apply({.rules = {.keep_last_n = 1}, .guard = refuse}),
              ElementsAre("+run-2 latest", "+run-1 not-removed"));
}

TEST_F(Retaining, RefusesBadRulesBeforeAnything) {
  save(1);
  EXPECT_EQ(reason(apply_retention(dir_.path(), {.rules = {.keep_last_n = 0}}, runtime_)),
            "retention/bad-rule");
  EXPECT_EQ(reason(apply_retention(dir_ / "nowhere", {}, runtime_)), "fs/not-found");
}

TEST_F(Retaining, SizesAreWhatManifestsListOrWhatLiesThere) {
  const std::string path = save(5);
  const auto size = [&] { return must(survey_run(dir_.path(), true, runtime_)).at(0).bytes; };
  const std::uint64_t manifest = files::file_size(path + "/model/.cairn.json");
  EXPECT_EQ(size(), 100 * 5 * 4 + manifest);
  testing::write_file(path + "/notes.txt", std::string(1000, 'x'));
  EXPECT_EQ(size(), 100 * 5 * 4 + manifest) << "notes are not ours";
  EXPECT_EQ(must(survey_run(dir_.path(), false, runtime_)).at(0).bytes, 0u);
  files::remove(path + "/cairn.json");
  std::uint64_t all = 0;
  for (const auto& entry : files::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) all += entry.file_size();
  }
  EXPECT_EQ(size(), all) << "it has no record any more";
}

TEST_F(Retaining, AFloorOfFreeSpaceLooksAtTheDisk) {
  save(1);
  save(2);
  EXPECT_THAT(apply({.rules = {.min_free_bytes = 1}}),
              ElementsAre("+run-2 latest", "+run-1 no-rule"));
  EXPECT_THAT(apply({.rules = {.min_free_bytes = ~std::uint64_t{0}}}),
              ElementsAre("+run-2 latest", "-run-1 min-free"));
}

TEST_F(Retaining, LinksAndTheRunItselfStay) {
  save(1);
  save(3);
  files::create_directory(dir_ / "elsewhere");
  files::rename(dir_ / "run-1", dir_ / "elsewhere/run-1");
  files::create_directory_symlink(dir_ / "elsewhere/run-1", dir_ / "run-1");
  const SaveInternals marked{.mark = dump_mark(make_mark(2, false, runtime_.clock().wall()))};
  must(save_checkpoint({{"model", Tree::dict({})}}, dir_.path(), {}, runtime_, &marked));
  for (const std::string& base : {dir_.path(), dir_.path() + "/"}) {
    std::vector<std::string> rules;
    for (const Verdict& verdict :
         must(apply_retention(base, {.rules = {.keep_last_n = 1}}, runtime_)))
      rules.emplace_back(verdict.rule);
    EXPECT_THAT(rules, ElementsAre("latest", "fixed", "fixed"));
  }
}

TEST_F(Retaining, AnAttemptThatWasGivenUpIsCleanedWhenItsRanksAreGone) {
  save(1);
  storage::FileSystem& fs = runtime_.file_system();
  auto attempt =
      must(begin_attempt(fs, runtime_.clock(), testing::local(dir_ / "run-2"), {.ranks = 2}));
  auto slow = must(join_attempt(fs, runtime_.clock(), testing::local(dir_ / "run-2"),
                                {.attempt = attempt->id(), .rank = 1, .ranks = 2}));
  EXPECT_FALSE(slow->abandon(Error(Code::kResourceExhausted, "storage/no-space", "full")));
  attempt.reset();
  const auto kept = must(clean_leftovers(dir_.path(), {}, runtime_));
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_THAT(kept[0].problem, HasSubstr("still lives"));
  slow.reset();
  const auto cleaned = must(clean_leftovers(dir_.path(), {}, runtime_));
  ASSERT_EQ(cleaned.size(), 1u);
  EXPECT_EQ(cleaned[0].problem, "");
  EXPECT_FALSE(files::exists(dir_ / "run-2")) << "nothing else was in it";
}

TEST_F(Retaining, ADirectoryInWhichASaveHadHardlyBegunGoes) {
  save(1);
  files::create_directories(dir_ / "run-2");
  testing::write_file(dir_ / "run-2/.cairn-lock", "");
  files::create_directories(dir_ / "run-3/.cairn-trash/x");
  files::create_directories(dir_ / "empty");
  EXPECT_EQ(must(find_leftovers(dir_.path(), runtime_)).size(), 2u);
  must(clean_leftovers(dir_.path(), {}, runtime_));
  EXPECT_FALSE(files::exists(dir_ / "run-2"));
  EXPECT_FALSE(files::exists(dir_ / "run-3"));
  EXPECT_TRUE(files::exists(dir_ / "empty")) << "nobody knows whose it is";
}

TEST_F(Retaining, LeavesOthersRunsAlone) {
  CAIRN_FIXTURE_OR_SKIP(folder, "eformer_run");
  files::copy(folder + "/checkpoint", dir_ / "run", files::copy_options::recursive);
  EXPECT_TRUE(must(find_leftovers(dir_ / "run", runtime_)).empty());
  EXPECT_TRUE(must(clean_leftovers(dir_ / "run", {}, runtime_)).empty());
  EXPECT_TRUE(files::exists(dir_ / "run/run-150")) << "temporary, but not ours";
  EXPECT_FALSE(files::exists(dir_ / "run/.cairn-lock"));
}

}  // namespace
}  // namespace cairn
