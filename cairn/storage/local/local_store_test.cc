// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/local_store.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cairn/storage/local/posix.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/store_suite.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::storage {
namespace {

using cairn::testing::LossyFileSystem;
using cairn::testing::must;
using cairn::testing::reason;
using cairn::testing::TempDir;
using cairn::testing::write_file;

std::shared_ptr<Store> store_in_new_directory(const LocalStoreOptions& options) {
  struct Held {
    TempDir dir;
    std::unique_ptr<Store> store;
  };
  auto held = std::make_shared<Held>();
  held->store = must(open_local_store(posix_file_system(), held->dir.path(), options));
  return {held, held->store.get()};
}

std::shared_ptr<Store> store_on_lossy_file_system(const LocalStoreOptions& options) {
  struct Held {
    LossyFileSystem fs;
    std::unique_ptr<Store> store;
  };
  auto held = std::make_shared<Held>();
  held->store = must(open_local_store(held->fs, "/", options));
  return {held, held->store.get()};
}

using cairn::testing::register_store_suite;

constexpr LocalStoreOptions kPrivate{.private_directory = true};
constexpr LocalStoreOptions kPrivateUnbatched{.private_directory = true, .batch_sync = false};

const bool kRegistered =
    register_store_suite("LocalStore", [] { return store_in_new_directory({}); }) &&
    register_store_suite("LocalStorePrivate", [] { return store_in_new_directory(kPrivate); }) &&
    register_store_suite("LocalStoreLossy", [] { return store_on_lossy_file_system({}); }) &&
    register_store_suite("LocalStoreLossyPrivate",
                         [] { return store_on_lossy_file_system(kPrivateUnbatched); });

std::unique_ptr<Store> open_at(const std::string& path) {
  return must(open_local_store(posix_file_system(), path));
}

std::vector<std::string> keys(Store& store) {
  std::vector<std::string> out;
  for (const ListEntry& entry : must(store.list("", true))) out.push_back(entry.key);
  return out;
}

using Keys = std::vector<std::string>;

TEST(LocalStore, MakesItsDirectoryOnlyWhenAsked) {
  const TempDir dir;
  EXPECT_EQ(reason(open_local_store(posix_file_system(), dir / "a/b/")), "storage/not-found");
  const auto store =
      must(open_local_store(posix_file_system(), dir / "a/b/", {.create_root = true}));
  EXPECT_EQ(store->describe("k"), dir / "a/b/k");
  EXPECT_TRUE(std::filesystem::is_directory(dir / "a/b"));
  write_file(dir / "file", "x");
  EXPECT_EQ(reason(open_local_store(posix_file_system(), dir / "file")), "fs/not-a-directory");
  EXPECT_EQ(reason(open_local_store(posix_file_system(), dir / "file", {.create_root = true})),
            "fs/not-a-directory");
}

TEST(LocalStore, FollowsLinksWhenItReads) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "blobs");
  std::filesystem::create_directories(dir / "snapshot/real");
  write_file(dir / "blobs/1", "weights");
  std::filesystem::create_symlink("../blobs/1", dir / "snapshot/model");
  std::filesystem::create_symlink("../blobs", dir / "snapshot/linked");
  std::filesystem::create_symlink("nowhere", dir / "snapshot/dangling");
  const auto store = open_at(dir / "snapshot");
  EXPECT_EQ(as_text(must(read_all(*store, "model", 100)).bytes()), "weights");
  EXPECT_EQ(must(store->stat("linked/1")).size, 7);
  EXPECT_EQ(keys(*store), (Keys{"linked/1", "model"}));
  EXPECT_EQ(reason(store->open("dangling")), "storage/not-found");
}

TEST(LocalStore, ListsLinkedDirectoriesOnceAndNoCycles) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "a/b");
  write_file(dir / "a/b/f", "x");
  std::filesystem::create_directory_symlink(dir / "a", dir / "a/b/up");
  std::filesystem::create_directory_symlink("../a", dir / "a/self");
  std::filesystem::create_directory_symlink("a/b", dir / "short");
  std::filesystem::create_directories(dir / "c");
  std::filesystem::create_directory_symlink("../a/b", dir / "c/second");
  std::filesystem::create_directory_symlink("c", dir / "first");
  const auto store = open_at(dir.path());
  EXPECT_EQ(keys(*store), (Keys{"a/b/f", "c/second/f", "short/f"})) << "not first/second/f";
}

TEST(LocalStore, NeverWritesOrDeletesThroughLinks) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "outside/d");
  write_file(dir / "outside/file", "theirs");
  std::filesystem::create_directories(dir / "root/real");
  std::filesystem::create_directory_symlink("../outside", dir / "root/link");
  std::filesystem::create_directory_symlink("../../outside", dir / "root/real/link");
  std::filesystem::create_symlink("../outside/file", dir / "root/file");
  std::filesystem::create_symlink("../outside/absent", dir / "root/absent");
  for (const bool is_private : {false, true}) {
    const auto store = must(
        open_local_store(posix_file_system(), dir / "root", {.private_directory = is_private}));
    for (const char* key : {"link/file", "link/new", "link/d/new", "link/new/new", "real/link/file",
                            "real/link/new", "real/link/d/new", "file", "absent"}) {
      EXPECT_EQ(reason(store->put(key, as_bytes("ours"))), "storage/symlink") << key;
      EXPECT_EQ(reason(store->create(key, 4)), "storage/symlink") << key;
    }
    for (const char* key : {"link/file", "real/link/file", "file", "absent"}) {
      EXPECT_EQ(reason(store->remove(key)), "storage/symlink") << key;
    }
  }
  EXPECT_EQ(cairn::testing::read_file(dir / "outside/file"), "theirs");
  EXPECT_EQ(keys(*open_at(dir / "outside")), Keys{"file"});
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "root/file"));
}

TEST(LocalStore, DoesNotWriteIntoADirectoryThatIsItselfALink) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "real");
  write_file(dir / "real/f", "x");
  std::filesystem::create_directory_symlink("real", dir / "link");
  const auto store = open_at(dir / "link/");
  EXPECT_EQ(keys(*store), Keys{"f"});
  EXPECT_EQ(reason(store->put("new", as_bytes("x"))), "storage/symlink");
  EXPECT_EQ(reason(store->remove("f")), "storage/symlink");
}

TEST(LocalStore, TakesNothingButFilesForObjects) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(dir / "directory");
  const auto store = open_at(dir.path());
  for (const char* key : {"pipe", "directory"}) {
    EXPECT_EQ(reason(store->open(key)), "storage/not-found") << key;
    EXPECT_EQ(reason(store->stat(key)), "storage/not-found") << key;
    EXPECT_EQ(reason(store->remove(key)), "storage/not-found") << key;
  }
  EXPECT_EQ(keys(*store), Keys{});
  EXPECT_EQ(reason(store->put("directory", as_bytes("x"))), "fs/is-a-directory");
}

TEST(LocalStore, HidesTemporaryNamesAndStepsOverOldOnes) {
  const TempDir dir;
  const auto store = open_at(dir.path());
  const auto one = must(store->create("d/one", 1));
  EXPECT_EQ(keys(*store), Keys{});
  EXPECT_EQ(must(store->list("d", false)).size(), 0);
  const auto again = open_at(dir.path());
  const auto two = must(again->create("d/two", 1));
  for (const auto& writer : {one.get(), two.get()}) {
    must(writer->write_at(0, as_bytes("x")));
    must(writer->finish());
  }
  EXPECT_EQ(keys(*store), (Keys{"d/one", "d/two"}));
}

TEST(LocalStore, MakesADirectoryAgainThatSomebodyRemoved) {
  const TempDir dir;
  const auto store = open_at(dir.path());
  must(store->put("a/b/key", as_bytes("x")));
  std::filesystem::remove_all(dir / "a");
  must(store->sync());
  must(store->put("a/b/key", as_bytes("y")));
  EXPECT_EQ(keys(*store), Keys{"a/b/key"});
  std::filesystem::remove_all(dir.path());
  EXPECT_EQ(reason(store->put("a/b/key", as_bytes("z"))), "storage/not-found");
  EXPECT_FALSE(std::filesystem::exists(dir.path())) << "the root never comes back";
}

struct SyncCase {
  const char* name;
  LocalStoreOptions options;
};

class LocalStoreDurability : public ::testing::TestWithParam<SyncCase> {};

INSTANTIATE_TEST_SUITE_P(
    Modes, LocalStoreDurability,
    ::testing::Values(SyncCase{"public", {.create_root = true}},
                      SyncCase{"private", {.create_root = true, .private_directory = true}},
                      SyncCase{
                          "unbatched",
                          {.create_root = true, .private_directory = true, .batch_sync = false}}),
    [](const auto& mode) { return mode.param.name; });

const std::string kText(3000, 'x');

Result<void> write_two_objects(FileSystem& fs, const LocalStoreOptions& options) {
  CAIRN_TRY_ASSIGN(const auto store, open_local_store(fs, "/run/attempt", options));
  CAIRN_TRY(store->put("model/a/.zarray", as_bytes("{}")));
  {
    CAIRN_TRY_ASSIGN(const auto writer, store->create("model/a/0.0", kText.size()));
    CAIRN_TRY(writer->write_at(1000, as_bytes(kText.substr(1000))));
    CAIRN_TRY(writer->write_at(0, as_bytes(kText.substr(0, 1000))));
    CAIRN_TRY(writer->finish());
  }
  return store->sync();
}

void expect_both(const LossyFileSystem& fs, const std::string& when) {
  const auto files = fs.snapshot();
  ASSERT_TRUE(files.contains("/run/attempt/model/a/0.0")) << when;
  EXPECT_EQ(files.at("/run/attempt/model/a/0.0"), kText) << when;
  EXPECT_EQ(files.at("/run/attempt/model/a/.zarray"), "{}") << when;
}

TEST_P(LocalStoreDurability, KeepsEverythingThatWasSynced) {
  LossyFileSystem fs;
  must(write_two_objects(fs, GetParam().options));
  expect_both(*fs.after_power_cut(), "all unsynced lost");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    expect_both(*fs.after_power_cut(seed), std::to_string(seed));
  }
}

TEST_P(LocalStoreDurability, UsesOneBatchSyncOnlyWhereItMay) {
  LossyFileSystem fs;
  must(write_two_objects(fs, GetParam().options));
  const auto operations = fs.operations();
  const auto batches =
      std::ranges::count_if(operations, [](const LossyFileSystem::Operation& operation) {
        return operation.name == "sync-file-system";
      });
  EXPECT_EQ(batches, GetParam().options.private_directory && GetParam().options.batch_sync ? 1 : 0);
}

TEST_P(LocalStoreDurability, ReportsTheErrorOfEveryOperation) {
  LossyFileSystem whole;
  must(write_two_objects(whole, GetParam().options));
  const auto operations = whole.operations();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    LossyFileSystem fs;
    fs.fail_at(i, EIO);
    EXPECT_EQ(reason(write_two_objects(fs, GetParam().options)), "fs/io")
        << i << " " << operations[i].name;
  }
}

TEST(LocalStore, ShowsAfterACrashAnObjectWholeOrNotAtAll) {
  const LocalStoreOptions options{.create_root = true};
  LossyFileSystem whole;
  must(write_two_objects(whole, options));
  const std::size_t count = whole.operations().size();
  for (std::size_t n = 0; n <= count; ++n) {
    LossyFileSystem fs;
    fs.crash_after(n);
    EXPECT_EQ(write_two_objects(fs, options).has_value(), n == count);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto left = seed == 0 ? fs.after_kill() : fs.after_power_cut(seed);
      for (const auto& [path, content] : left->snapshot()) {
        const bool torn = (path.ends_with("/0.0") && content != kText) ||
                          (path.ends_with("/.zarray") && content != "{}");
        EXPECT_FALSE(torn) << n << " " << seed << " " << path;
      }
    }
  }
}

TEST(LocalStore, ReplacesAnObjectByOldOrNewOnly) {
  LossyFileSystem start;
  const auto replace = [](FileSystem& fs, std::string_view text) -> Result<void> {
    CAIRN_TRY_ASSIGN(const auto store, open_local_store(fs, "/"));
    CAIRN_TRY(store->put("key", as_bytes(text)));
    return store->sync();
  };
  must(replace(start, "old"));
  for (std::size_t n = 0; n < 20; ++n) {
    const auto fs = start.after_kill();
    fs->crash_after(n);
    const bool done = replace(*fs, "new").has_value();
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::string text = fs->after_power_cut(seed)->snapshot().at("/key");
      EXPECT_TRUE(text == "new" || (text == "old" && !done)) << n << " " << text;
    }
  }
}

TEST(LocalStore, SyncsAgainWhatAFailedSyncLeft) {
  LossyFileSystem fs;
  const auto store = must(open_local_store(fs, "/"));
  must(store->put("d/key", as_bytes("x")));
  fs.fail_at(fs.operations().size() + 1, EIO);
  EXPECT_EQ(reason(store->sync()), "fs/io");
  must(store->sync());
  EXPECT_EQ(fs.after_power_cut()->snapshot().at("/d/key"), "x");
}

}  // namespace
}  // namespace cairn::storage
