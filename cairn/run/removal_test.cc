// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/removal.h"

#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/load/load.h"
#include "cairn/run/discovery.h"
#include "cairn/run/mark.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/fixtures.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

namespace files = std::filesystem;
using namespace std::string_literals;
using ::testing::HasSubstr;
using testing::must;
using testing::reason;
using testing::TempDir;
using ::testing::UnorderedElementsAre;

std::set<std::string> names_in(const std::string& path) {
  std::set<std::string> names;
  for (const auto& entry : files::directory_iterator(path)) names.insert(entry.path().filename());
  return names;
}

class Removing : public ::testing::Test {
 protected:
  void save(const std::string& name, int step, bool temporary = false,
            const std::string& layout = "zarr2", const std::string& prefix = "model") {
    SaveInternals marked;
    marked.mark = dump_mark(make_mark(step, temporary, runtime_.clock().wall()));
    const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2, 3}))}});
    must(save_checkpoint({{prefix, tree}}, dir_ / name, {.layout = layout}, runtime_, &marked));
  }

  Result<Removal> remove(const std::string& name, const RemovalOptions& options = {}) {
    return remove_checkpoint(dir_.path(), dir_ / name, options, runtime_);
  }

  bool exists(const std::string& name) const { return files::exists(dir_ / name); }

  std::string latest() {
    const auto found = must(find_latest_checkpoint(dir_.path(), runtime_));
    return found ? found->substr(found->rfind('/') + 1) : "none";
  }

  TempDir dir_;
  Runtime runtime_;
};

TEST_F(Removing, HidesAtOnceAndDeletesLater) {
  save("run-1", 1);
  save("run-2", 2);
  EXPECT_EQ(must(remove("run-2")), Removal::kRemoved);
  EXPECT_FALSE(exists("run-2"));
  EXPECT_EQ(latest(), "run-1");
  EXPECT_EQ(names_in(dir_ / ".cairn-trash").size(), 1u);
  EXPECT_EQ(must(list_run(dir_.path(), runtime_)).size(), 1u);
  EXPECT_EQ(must(empty_trash(dir_.path(), runtime_)), 1u);
  EXPECT_FALSE(exists(".cairn-trash"));
  EXPECT_EQ(must(empty_trash(dir_.path(), runtime_)), 0u);
  EXPECT_EQ(must(remove("run-2")), Removal::kNotThere);
  save("run-2", 2);
  EXPECT_EQ(latest(), "run-2");
}

TEST_F(Removing, TakesAnyWayOfNamingAChildOfTheRun) {
  files::create_directory_symlink(dir_.path(), dir_ / "link");
  for (const std::string& path :
       {dir_ / "run-1/", "file://" + (dir_ / "run-1"), dir_ / "link/run-1", dir_ / "./run-1"}) {
    save("run-1", 1);
    EXPECT_EQ(must(remove_checkpoint(dir_.path() + "/", path, {}, runtime_)), Removal::kRemoved);
  }
}

TEST_F(Removing, RefusesWhatIsNoChildOfTheRun) {
  save("run-1", 1);
  save("sub/run-2", 2);
  for (const std::string& path : {dir_.path(), dir_ / "sub/run-2", dir_ / "run-1/..",
                                  std::string("run-1"), std::string("/"), dir_ / ".cairn-lock"}) {
    EXPECT_EQ(reason(remove_checkpoint(dir_.path(), path, {}, runtime_)), "removal/outside")
        << path;
  }
  EXPECT_EQ(reason(remove_checkpoint(dir_ / "sub", dir_ / "run-1", {}, runtime_)),
            "removal/outside");
}

TEST_F(Removing, RefusesLinks) {
  save("sub/run-1", 1);
  files::create_directory_symlink(dir_ / "sub/run-1", dir_ / "run-1");
  EXPECT_EQ(reason(remove("run-1")), "removal/symlink");
  EXPECT_TRUE(exists("sub/run-1/cairn.json"));
}

TEST_F(Removing, RefusesForeignOnesAndLeavesNoTraceInThem) {
  files::create_directories(dir_ / "notes");
  testing::write_file(dir_ / "notes/a.txt", "mine");
  EXPECT_EQ(reason(remove("notes")), "removal/foreign");
  EXPECT_EQ(reason(remove("notes", {.with_other_files = true})), "removal/foreign");
  EXPECT_THAT(names_in(dir_ / "notes"), UnorderedElementsAre("a.txt"));
  EXPECT_THAT(names_in(dir_.path()), UnorderedElementsAre("notes"));
  CAIRN_FIXTURE_OR_SKIP(folder, "eformer_run");
  files::copy(folder + "/checkpoint/run-100", dir_ / "run-100", files::copy_options::recursive);
  const auto before = names_in(dir_ / "run-100");
  EXPECT_EQ(reason(remove("run-100", {.with_other_files = true})), "removal/foreign");
  EXPECT_EQ(names_in(dir_ / "run-100"), before);
}

TEST_F(Removing, RefusesAPinnedOneWithTheReason) {
  save("run-1", 1, true);
  must(pin(dir_ / "run-1", "for the paper", runtime_));
  const auto removed = remove("run-1", {.only_if_temporary = true, .with_other_files = true});
  ASSERT_EQ(reason(removed), "removal/pinned");
  EXPECT_THAT(removed.error().message(), HasSubstr("for the paper"));
  must(unpin(dir_ / "run-1", runtime_));
  EXPECT_EQ(must(remove("run-1")), Removal::kRemoved);
}

TEST_F(Removing, RefusesOneThatSomebodySavesInto) {
  save("run-1", 1);
  const auto attempt = must(begin_attempt(runtime_.file_system(), runtime_.clock(),
                                          testing::local(dir_ / "run-1"), {.prefixes = {"other"}}));
  const auto removed = remove("run-1");
  ASSERT_EQ(reason(removed), "removal/busy");
  EXPECT_THAT(removed.error().message(), HasSubstr("process " + std::to_string(::getpid())));
}

TEST_F(Removing, OfTemporaryOnesLeavesWhatWasPromoted) {
  save("run-1", 1, true);
  save("run-2", 2, true);
  must(promote(dir_ / "run-1", runtime_));
  EXPECT_EQ(must(remove("run-1", {.only_if_temporary = true})), Removal::kNotTemporary);
  EXPECT_EQ(must(remove("run-2", {.only_if_temporary = true})), Removal::kRemoved);
  files::remove(dir_ / "run-1/metadata.json");
  EXPECT_EQ(must(remove("run-1", {.only_if_temporary = true})), Removal::kNotTemporary);
}

TEST_F(Removing, AsksTheOwnerOfTheRunFirst) {
  save("run-1", 1);
  const CommitGuard refuse = []() -> Result<std::shared_ptr<void>> {
    return Error(Code::kFailedPrecondition, "run/taken-over", "no");
  };
  EXPECT_EQ(reason(remove("run-1", {.guard = refuse})), "run/taken-over");
  EXPECT_EQ(latest(), "run-1");
}

TEST_F(Removing, OtherPeoplesFilesStayUnlessTheyAreToGo) {
  for (const std::string layout : {"zarr2", "safetensors"}) {
    save("run-1", 1, false, layout);
    save("run-1", 1, false, layout, "a.b");
    testing::write_file(dir_ / "run-1/config.json", "{}");
    testing::write_file(dir_ / "run-1/model_structure.json", "{}");
    EXPECT_EQ(must(remove("run-1")), Removal::kOthersStay);
    std::set<std::string> left = names_in(dir_ / "run-1");
    left.erase("a");  // the directory of a prefix may stay empty
    EXPECT_THAT(left, UnorderedElementsAre("config.json", "cairn.json", ".cairn-lock"));
    EXPECT_EQ(latest(), "none");
    EXPECT_TRUE(must(list_run(dir_.path(), runtime_)).empty());
    EXPECT_EQ(reason(remove("run-1")), "removal/foreign") << "nothing of ours is left";
    save("run-1", 1, false, layout);
    EXPECT_EQ(latest(), "run-1");
    EXPECT_EQ(must(remove("run-1", {.with_other_files = true})), Removal::kRemoved);
    EXPECT_FALSE(exists("run-1"));
  }
}

TEST_F(Removing, ATemporaryOneGoesWithAllThatLiesInIt) {
  save("run-1", 1, true);
  testing::write_file(dir_ / "run-1/config.json", "{}");
  testing::write_file(dir_ / "run-1/tensorstore_index.json", "others' too");
  EXPECT_EQ(must(remove("run-1")), Removal::kRemoved);
  EXPECT_FALSE(exists("run-1"));
}

TEST_F(Removing, FilesOfOthersBetweenOurDirectoriesStay) {
  save("run-1", 1, false, "zarr2", "a.b");
  testing::write_file(dir_ / "run-1/a/readme.txt", "mine");
  EXPECT_EQ(must(remove("run-1")), Removal::kOthersStay);
  EXPECT_EQ(testing::read_file(dir_ / "run-1/a/readme.txt"), "mine");
  EXPECT_FALSE(exists("run-1/a/b"));
}

TEST_F(Removing, RefusesWhereOthersHaveArraysInTheSameIndex) {
  save("run-1", 1);
  const std::string index = testing::read_file(dir_ / "run-1/tensorstore_index.json");
  for (const std::string& text :
       {std::string("no index"),
        R"({"format": "tensorstore", "version": "2.0", "prefixes": {"model": [], "tx": []}})"s}) {
    testing::write_file(dir_ / "run-1/tensorstore_index.json", text);
    EXPECT_EQ(reason(remove("run-1")), "removal/foreign");
    EXPECT_EQ(latest(), text[0] == '{' ? "run-1" : latest());
  }
  EXPECT_EQ(must(remove("run-1", {.with_other_files = true})), Removal::kRemoved);
}

TEST_F(Removing, ALinkInThePlaceOfAnEntryIsSomebodyElses) {
  save("run-1", 1);
  files::rename(dir_ / "run-1/model", dir_ / "moved");
  files::create_directory_symlink(dir_ / "moved", dir_ / "run-1/model");
  EXPECT_EQ(reason(remove("run-1")), "commit/symlink");
  EXPECT_TRUE(exists("moved/.cairn.json"));
}

TEST_F(Removing, WhatAWriterLeftBeforeItsFirstCommitIsOurs) {
  {
    const auto attempt =
        must(begin_attempt(runtime_.file_system(), runtime_.clock(), testing::local(dir_ / "run-1"),
                           {.prefixes = {"model"}}));
    files::copy(dir_ / "run-1", dir_ / "run-2", files::copy_options::recursive);
  }
  EXPECT_EQ(must(remove("run-2")), Removal::kRemoved);
  EXPECT_EQ(must(remove("run-1")), Removal::kRemoved) << "nothing but a lock";
}

/// Two empty one trash: before any operation of one, the other may have removed everything.
TEST_F(Removing, TheTrashMayBeEmptiedTwiceAtOnce) {
  bool happened = true;
  for (std::size_t n = 0; happened; ++n) {
    save("run-1", 1);
    must(remove("run-1"));
    happened = false;
    const auto fs = testing::interpose(runtime_.file_system(), [&](std::size_t operation) {
      if (operation != n) return;
      happened = true;
      files::remove_all(dir_ / ".cairn-trash");
    });
    Runtime other({.threads = 1, .file_system = fs.get()});
    const auto emptied = empty_trash(dir_.path(), other);
    EXPECT_TRUE(emptied) << "operation " << n << ": " << emptied.error().to_string();
    EXPECT_FALSE(exists(".cairn-trash"));
  }
}

}  // namespace
}  // namespace cairn
