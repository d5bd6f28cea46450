// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/lossy_file_system.h"

#include <cerrno>
#include <set>

#include <gtest/gtest.h>

namespace cairn::testing {
namespace {

using storage::File;
using storage::OpenOptions;

using Snapshot = std::map<std::string, std::string>;

constexpr OpenOptions kNew{
    .access = OpenOptions::Access::kReadWrite, .create = true, .exclusive = true};
constexpr OpenOptions kExisting{.access = OpenOptions::Access::kReadWrite};
constexpr OpenOptions kDirectory{.access = OpenOptions::Access::kDirectory};

template <typename T>
T must(Result<T> result) {
  if (!result) ADD_FAILURE() << result.error().to_string();
  return *std::move(result);
}
void must(const Result<void>& result) {
  if (!result) ADD_FAILURE() << result.error().to_string();
}
template <typename T>
std::string reason(const Result<T>& result) {
  return result ? "none" : std::string(result.error().reason());
}

std::unique_ptr<File> write_new(LossyFileSystem& fs, const std::string& path,
                                const std::string& text) {
  auto file = must(fs.open(nullptr, path, kNew));
  must(file->write_at(0, as_bytes(text)));
  return file;
}
void sync_directory(LossyFileSystem& fs, const std::string& path) {
  must(must(fs.open(nullptr, path, kDirectory))->sync());
}

TEST(LossyFileSystem, KeepsBytesAndNamesOnlyWhenBothAreSynced) {
  LossyFileSystem fs;
  const auto file = write_new(fs, "/a", "text");
  EXPECT_EQ(fs.snapshot(), (Snapshot{{"/a", "text"}}));
  EXPECT_EQ(fs.after_power_cut()->snapshot(), Snapshot{});
  must(file->sync());
  EXPECT_EQ(fs.after_power_cut()->snapshot(), Snapshot{}) << "fsync of a file keeps no name";
  sync_directory(fs, "/");
  EXPECT_EQ(fs.after_power_cut()->snapshot(), (Snapshot{{"/a", "text"}}));
}

TEST(LossyFileSystem, KeepsANameWithoutItsBytes) {
  LossyFileSystem fs;
  const auto file = write_new(fs, "/a", "text");
  sync_directory(fs, "/");
  EXPECT_EQ(fs.after_power_cut()->snapshot(), (Snapshot{{"/a", ""}}));
}

TEST(LossyFileSystem, KeepsNothingBelowADirectoryWithoutAName) {
  LossyFileSystem fs;
  must(fs.make_directory(nullptr, "/d"));
  must(write_new(fs, "/d/a", "text")->sync());
  sync_directory(fs, "/d");
  EXPECT_EQ(fs.after_power_cut()->snapshot(), Snapshot{});
  sync_directory(fs, "/");
  EXPECT_EQ(fs.after_power_cut()->snapshot(), (Snapshot{{"/d/", ""}, {"/d/a", "text"}}));
}

TEST(LossyFileSystem, KeepsEverythingAfterASyncOfTheFileSystem) {
  LossyFileSystem fs;
  must(fs.make_directory(nullptr, "/d"));
  const auto file = write_new(fs, "/d/a", "text");
  must(file->sync_file_system());
  EXPECT_EQ(fs.after_power_cut()->snapshot(), fs.snapshot());
}

TEST(LossyFileSystem, BringsBackWhatWasUnlinkedOrReplacedWithoutADirectorySync) {
  LossyFileSystem fs;
  must(write_new(fs, "/a", "old")->sync());
  must(write_new(fs, "/b", "new")->sync());
  sync_directory(fs, "/");
  const Snapshot before = fs.snapshot();
  must(fs.rename(nullptr, "/b", nullptr, "/a"));
  must(fs.remove_file(nullptr, "/a"));
  EXPECT_EQ(fs.snapshot(), Snapshot{});
  EXPECT_EQ(fs.after_power_cut()->snapshot(), before);
  sync_directory(fs, "/");
  EXPECT_EQ(fs.after_power_cut()->snapshot(), Snapshot{});
}

TEST(LossyFileSystem, RenamesBetweenDirectoriesAsOne) {
  LossyFileSystem fs;
  for (const char* name : {"/from", "/to"}) must(fs.make_directory(nullptr, name));
  must(write_new(fs, "/from/a", "text")->sync());
  must(must(fs.open(nullptr, "/", kDirectory))->sync_file_system());
  must(fs.rename(nullptr, "/from/a", nullptr, "/to/b"));
  std::set<bool> moved;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Snapshot left = fs.after_power_cut(seed)->snapshot();
    EXPECT_NE(left.contains("/from/a"), left.contains("/to/b"));
    moved.insert(left.contains("/to/b"));
  }
  EXPECT_EQ(moved.size(), 2);
  sync_directory(fs, "/to");
  EXPECT_EQ(fs.after_power_cut()->snapshot(), fs.snapshot());
}

TEST(LossyFileSystem, LosesAnySubsetOfWhatNothingOrdered) {
  LossyFileSystem fs;
  const auto a = write_new(fs, "/a", std::string(1024, 'x'));
  const auto b = write_new(fs, "/b", "y");
  std::set<Snapshot> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    seen.insert(fs.after_power_cut(seed)->snapshot());
  const std::string torn_front = std::string(512, '\0') + std::string(512, 'x');
  for (const Snapshot& expected :
       {Snapshot{}, Snapshot{{"/a", ""}}, Snapshot{{"/a", std::string(512, 'x')}},
        Snapshot{{"/a", torn_front}}, Snapshot{{"/b", ""}}, Snapshot{{"/b", "y"}}, fs.snapshot()}) {
    EXPECT_TRUE(seen.contains(expected)) << expected.size();
  }
  EXPECT_EQ(fs.after_power_cut(7)->snapshot(), fs.after_power_cut(7)->snapshot());
}

TEST(LossyFileSystem, NeverUndoesAnEarlierChangeOfANameBeforeALaterOne) {
  LossyFileSystem fs;
  must(write_new(fs, "/a", "old")->sync());
  must(write_new(fs, "/x", "new")->sync());
  sync_directory(fs, "/");
  must(fs.rename(nullptr, "/x", nullptr, "/a"));
  must(fs.rename(nullptr, "/a", nullptr, "/y"));
  const std::set<Snapshot> allowed = {
      {{"/a", "old"}, {"/x", "new"}}, {{"/a", "new"}}, {{"/y", "new"}}};
  std::set<Snapshot> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    seen.insert(fs.after_power_cut(seed)->snapshot());
  EXPECT_EQ(seen, allowed);
}

TEST(LossyFileSystem, RandomSurvivorsNeverLoseWhatWasSynced) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    LossyFileSystem fs;
    std::mt19937_64 random(seed);
    must(write_new(fs, "/kept", "kept")->sync());
    sync_directory(fs, "/");
    for (int i = 0; i < 30; ++i) {
      const std::string name = "/f" + std::to_string(random() % 5);
      const std::string other = "/f" + std::to_string(random() % 5);
      switch (random() % 4) {
        case 0:
          fs.open(nullptr, name, kNew).ignore_error("may be there");
          break;
        case 1:
          fs.rename(nullptr, name, nullptr, other).ignore_error("may be missing");
          break;
        case 2:
          fs.remove_file(nullptr, name).ignore_error("may be missing");
          break;
        case 3:
          fs.link(nullptr, name, nullptr, other).ignore_error("may be missing");
          break;
      }
    }
    EXPECT_EQ(fs.after_power_cut(seed)->snapshot().at("/kept"), "kept");
    must(must(fs.open(nullptr, "/", kDirectory))->sync());
    const auto names = fs.snapshot();
    EXPECT_EQ(fs.after_power_cut(seed)->snapshot(), names);
  }
}

TEST(LossyFileSystem, LosesNothingWithAKilledProcessAndMakesNothingDurable) {
  LossyFileSystem fs;
  const auto file = write_new(fs, "/a", "text");
  EXPECT_TRUE(must(file->try_lock()));
  const auto left = fs.after_kill();
  EXPECT_EQ(left->snapshot(), fs.snapshot());
  EXPECT_EQ(left->after_power_cut()->snapshot(), Snapshot{});
  EXPECT_TRUE(must(must(left->open(nullptr, "/a", kExisting))->try_lock()));
}

TEST(LossyFileSystem, LocksBelongToTheOpenFile) {
  LossyFileSystem fs;
  auto first = write_new(fs, "/lock", "");
  const auto second = must(fs.open(nullptr, "/lock", kExisting));
  EXPECT_TRUE(must(first->try_lock()));
  EXPECT_TRUE(must(first->try_lock()));
  EXPECT_FALSE(must(second->try_lock()));
  first.reset();
  EXPECT_TRUE(must(second->try_lock()));
}

TEST(LossyFileSystem, CountsOperationsAndFailsTheOneAskedFor) {
  LossyFileSystem fs;
  fs.fail_at(1, ENOSPC);
  fs.fail_at(3, EIO);
  const auto file = must(fs.open(nullptr, "/a", kNew));
  EXPECT_EQ(reason(file->write_at(0, as_bytes("abcd"))), "fs/no-space");
  EXPECT_EQ(fs.snapshot(), (Snapshot{{"/a", "ab"}}));
  must(file->write_at(0, as_bytes("abcd")));
  EXPECT_EQ(reason(file->sync()), "fs/io");
  std::vector<std::string> names;
  for (const auto& operation : fs.operations()) {
    names.push_back(operation.name);
    EXPECT_EQ(operation.path, "/a");
    EXPECT_TRUE(operation.changes);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"create", "write", "write", "sync"}));
}

TEST(LossyFileSystem, DoesNotMakeDurableWhatAFailedSyncGaveUp) {
  LossyFileSystem fs;
  const auto file = write_new(fs, "/a", "text");
  sync_directory(fs, "/");
  fs.fail_at(fs.operations().size(), EIO);
  EXPECT_FALSE(file->sync());
  must(file->sync());
  EXPECT_EQ(fs.snapshot(), (Snapshot{{"/a", "text"}}));
  EXPECT_EQ(fs.after_power_cut()->snapshot(), (Snapshot{{"/a", ""}}));
}

TEST(LossyFileSystem, DoesNothingOnceItCrashed) {
  LossyFileSystem fs;
  fs.crash_after(1);
  const auto file = must(fs.open(nullptr, "/a", kNew));
  EXPECT_EQ(reason(file->write_at(0, as_bytes("abcd"))), "lossy/crashed");
  EXPECT_EQ(reason(file->write_at(4, as_bytes("efgh"))), "lossy/crashed");
  EXPECT_EQ(reason(fs.remove_file(nullptr, "/a")), "lossy/crashed");
  EXPECT_EQ(reason(fs.stat(nullptr, "/a", false)), "lossy/crashed");
  EXPECT_EQ(fs.snapshot(), (Snapshot{{"/a", "ab"}})) << "half of the write that was cut off";
  EXPECT_EQ(fs.operations().size(), 1);
}

}  // namespace
}  // namespace cairn::testing
