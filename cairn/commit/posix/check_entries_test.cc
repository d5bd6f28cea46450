// SPDX-License-Identifier: Apache-2.0
// Attempts that no save of ours made, in a directory with files of other people.
#include "cairn/commit/posix/check_entries.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/base/clock.h"
#include "cairn/commit/posix/attempts.h"
#include "cairn/manifest/names.h"
#include "cairn/save/save.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using testing::must;
using testing::reason;

class PlantedAttempt : public ::testing::Test {
 protected:
  PlantedAttempt() {
    testing::write_file(dir_ / "notes.txt", "mine");
    fs::create_directories(dir_ / "results");
    testing::write_file(dir_ / "results/table", "mine too");
  }

  /// A decided attempt whose record names `entries`, with a file for each name that comes in.
  void plant(Outcome outcome, const std::vector<std::string>& entries, bool with_record = true) {
    outcome.commit = true;
    outcome.prefixes = {"x"};
    fs::create_directories(attempt_ + "/new");
    fs::create_directories(attempt_ + "/old");
    testing::write_file(attempt_ + "/attempt.json",
                        must(dump_attempt_file({.id = std::string(32, 'a')})));
    for (const std::string& name : outcome.in)
      testing::write_file(attempt_ + "/new/" + name, "planted");
    Record record;
    record.writer = "cairn";
    record.prefixes = {{"x", "x.cairn.json", 1, "00", "id", entries}};
    if (with_record) testing::write_file(attempt_ + "/new/cairn.json", must(dump_record(record)));
    testing::write_file(attempt_ + "/outcome.json", must(dump_outcome(outcome)));
  }

  Result<SaveReport> save() {
    Runtime runtime;
    testing::Random random(1);
    const Tree tree = Tree::dict({{"w", testing::random_array(random, DType::kInt8, {3})}});
    return save_tree(tree, dir_.path(), {}, runtime, "model");
  }

  void expect_untouched() {
    EXPECT_EQ(testing::read_file(dir_ / "notes.txt"), "mine");
    EXPECT_EQ(testing::read_file(dir_ / "results/table"), "mine too");
  }

  const testing::TempDir dir_;
  const std::string attempt_ = dir_ / (".cairn-" + std::string(32, 'a'));
};

TEST_F(PlantedAttempt, TakesNothingAwayThatNoRecordNames) {
  for (const std::string name : {"notes.txt", "results"}) {
    for (const std::vector<std::string>& entries : {std::vector<std::string>{}, {name}}) {
      plant({.out = {name}}, entries);
      const auto saved = save();
      EXPECT_EQ(reason(saved), "commit/unknown-entry");
      EXPECT_THAT(saved.error().to_string(), ::testing::HasSubstr(attempt_));
      expect_untouched();
    }
  }
}

TEST_F(PlantedAttempt, OverwritesNothing) {
  plant({.in = {"notes.txt"}}, {"notes.txt"});
  EXPECT_EQ(reason(save()), "commit/unknown-entry");
  plant({.out = {"notes.txt"}, .in = {"notes.txt"}}, {"notes.txt"});
  EXPECT_EQ(reason(save()), "commit/unknown-entry");
  expect_untouched();
}

TEST_F(PlantedAttempt, BringsNothingThatItsRecordDoesNotName) {
  plant({.in = {"sitecustomize.py"}}, {"w"});
  EXPECT_EQ(reason(save()), "commit/unknown-entry");
  EXPECT_FALSE(fs::exists(dir_ / "sitecustomize.py"));
}

TEST_F(PlantedAttempt, WithoutARecordMovesNothing) {
  plant({.out = {"notes.txt"}, .in = {"more.txt"}}, {}, false);
  must(save());
  expect_untouched();
  EXPECT_FALSE(fs::exists(dir_ / "more.txt"));
  EXPECT_FALSE(fs::exists(attempt_));
}

TEST_F(PlantedAttempt, ReplacesNoFileThatNoSaveReplaces) {
  // The mark is replaced as the mark alone.
  for (const char* const name : {"notes.txt", "metadata.json"}) {
    plant({.files = {{name, {}, {}}}}, {});
    EXPECT_EQ(reason(save()), "outcome/bad-file");
    expect_untouched();
    fs::remove_all(attempt_);
  }
}

TEST_F(PlantedAttempt, MayGoWhenItIsRemovedAsTheMessageSays) {
  plant({.out = {"notes.txt"}}, {});
  EXPECT_FALSE(save());
  fs::remove_all(attempt_);
  must(save());
  expect_untouched();
}

// Entries of several prefixes against each other, beside an oracle that compares all with all.
TEST(Entries, OfOnePrefixDoNotLieInsideThoseOfAnother) {
  const testing::TempDir dir;
  const Directory dest =
      must(Directory::open(storage::posix_file_system(), testing::local(dir.path()), false));
  const std::vector<std::string> names = {"a", "a!b", "a/b", "a/b/c", "a0", "b", "b/a"};
  const auto nest = [](const std::string& one, const std::string& other) {
    return one == other || one.starts_with(other + "/") || other.starts_with(one + "/");
  };
  for (const std::string& one : names) {
    for (const std::string& two : names) {
      for (const std::string& old : names) {
        Record before;
        before.prefixes = {{"old", "m", 1, "00", "id", {old}}};
        const bool expected = nest(one, two) || nest(one, old) || nest(two, old);
        const auto checked = check_entries(
            dest, {{"p", "m", 1, "00", "id", {one}}, {"q", "m", 1, "00", "id", {two}}}, before);
        EXPECT_EQ(reason(checked), expected ? "prefix/nested" : "none")
            << one << " " << two << " " << old;
      }
    }
  }
}

}  // namespace
}  // namespace cairn
