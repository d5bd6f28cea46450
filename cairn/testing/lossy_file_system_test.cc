// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/lossy_file_system.h"

#include <array>
#include <cerrno>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "cairn/storage/local/posix.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::testing {
namespace {

using storage::File;
using storage::OpenOptions;

using Snapshot = std::map<std::string, std::string>;

constexpr OpenOptions kNew{
    .access = OpenOptions::Access::kReadWrite, .create = true, .exclusive = true};
constexpr OpenOptions kExisting{.access = OpenOptions::Access::kReadWrite};
constexpr OpenOptions kDirectory{.access = OpenOptions::Access::kDirectory};

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
  EXPECT_EQ(reason(file->write_at(0, as_bytes("abcd"))), "storage/no-space");
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

/// One random call; what it answered, as text.
std::string random_call(storage::FileSystem& fs, const File& root, std::mt19937_64& random) {
  const std::array paths = {"a", "b", "d", "d/a", "d/e", "d/e/a", "d/e/f", "x/a", "a/b", "."};
  const std::string path = paths.at(random() % paths.size());
  const std::string other = paths.at(random() % paths.size());
  const OpenOptions any{.access = OpenOptions::Access::kReadWrite, .create = true};
  const std::string text = path + other;
  switch (random() % 10) {
    case 0:
      return "create " + path + " " + reason(fs.open(&root, path, kNew));
    case 1:
      return "make " + path + " " + reason(fs.make_directory(&root, path));
    case 2:
      return "remove " + path + " " + reason(fs.remove_file(&root, path));
    case 3:
      return "remove-directory " + path + " " + reason(fs.remove_directory(&root, path));
    case 4:
      return "link " + text + " " + reason(fs.link(&root, path, &root, other));
    case 5:
      return "open " + path + " " + reason(fs.open(&root, path, kDirectory));
    case 6: {
      auto info = fs.stat(&root, path, false);
      if (!info) return "stat " + path + " " + reason(info);
      const bool file = info->kind == storage::FileKind::kFile;
      return "stat " + path + (file ? std::to_string(info->size * 10 + info->links) : "");
    }
    case 7: {
      auto file = fs.open(&root, path, any);
      const std::uint64_t at = random() % 2000;
      return "write " + path +
             (file ? reason((*file)->write_at(at, as_bytes(text))) : reason(file));
    }
    case 8: {
      auto file = fs.open(&root, path, kExisting);
      const std::uint64_t size = random() % 2000;
      return "truncate " + path + (file ? reason((*file)->truncate(size)) : reason(file));
    }
    default:
      return "rename " + path + " " + other + reason(fs.rename(&root, path, &root, other));
  }
}

void add_files(storage::FileSystem& fs, const File& directory, const std::string& path,
               Snapshot& out) {
  for (const storage::DirEntry& entry : must(fs.list(directory))) {
    const std::string child = path + "/" + entry.name;
    if (entry.kind == storage::FileKind::kDirectory) {
      out[child + "/"] = "";
      add_files(fs, *must(fs.open(&directory, entry.name, kDirectory)), child, out);
    } else {
      std::string text(5000, ' ');
      const auto file = must(fs.open(&directory, entry.name, {}));
      text.resize(must(file->read_at(0, std::as_writable_bytes(std::span(text)))));
      out[child] = text;
    }
  }
}

TEST(LossyFileSystem, AnswersAsTheRealOneDoes) {
  storage::FileSystem& posix = storage::posix_file_system();
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const TempDir dir;
    LossyFileSystem lossy;
    const auto posix_root = must(posix.open(nullptr, dir.path(), kDirectory));
    const auto lossy_root = must(lossy.open(nullptr, "/", kDirectory));
    std::mt19937_64 for_posix(seed);
    std::mt19937_64 for_lossy(seed);
    for (int i = 0; i < 400; ++i) {
      ASSERT_EQ(random_call(lossy, *lossy_root, for_lossy),
                random_call(posix, *posix_root, for_posix));
    }
    Snapshot in_posix;
    add_files(posix, *posix_root, "", in_posix);
    EXPECT_EQ(lossy.snapshot(), in_posix);
  }
}

}  // namespace
}  // namespace cairn::testing
