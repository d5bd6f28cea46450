// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/temporary_files.h"

#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cairn/storage/local/local_store.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::storage {
namespace {

using cairn::testing::LossyFileSystem;
using cairn::testing::must;
using cairn::testing::TempDir;
using cairn::testing::write_file;

std::unique_ptr<Store> open_at(const std::string& path) {
  return must(open_local_store(posix_file_system(), path));
}

std::vector<std::string> temporary_names(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kTemporaryPrefix)) names.push_back(name);
  }
  return names;
}

/// A process that is gone in the middle of an object.
void die_writing(const std::string& directory, const std::string& key) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = open_local_store(posix_file_system(), directory);
    const auto writer = (*store)->create(key, 8);
    ::_exit(writer && (*writer)->write_at(0, as_bytes("half")) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(TemporaryFiles, GoWithTheNextWriterWhenTheirOwnWasKilled) {
  const TempDir dir;
  die_writing(dir.path(), "a.safetensors");
  die_writing(dir.path(), "b.safetensors");
  EXPECT_EQ(temporary_names(dir.path()).size(), 1u) << "the second removed what the first left";
  must(open_at(dir.path())->put("a.safetensors", as_bytes("whole")));
  EXPECT_EQ(temporary_names(dir.path()).size(), 0u);
  EXPECT_TRUE(std::filesystem::exists(dir / "a.safetensors"));
}

TEST(TemporaryFiles, GoFromTheDirectoryThatIsWrittenToAlone) {
  const TempDir dir;
  die_writing(dir.path(), "d/one");
  die_writing(dir.path(), "e/one");
  const auto store = open_at(dir.path());
  must(store->put("e/two", as_bytes("x")));
  EXPECT_EQ(temporary_names(dir / "d").size(), 1u);
  EXPECT_EQ(temporary_names(dir / "e").size(), 0u);
}

TEST(TemporaryFiles, StayWhileTheirWriterLives) {
  const TempDir dir;
  const auto store = open_at(dir.path());
  const auto living = must(store->create("one", 1));
  ASSERT_EQ(temporary_names(dir.path()).size(), 1u);
  must(open_at(dir.path())->put("two", as_bytes("x")));
  EXPECT_EQ(temporary_names(dir.path()).size(), 1u);
  must(living->write_at(0, as_bytes("x")));
  must(living->finish());
}

TEST(TemporaryFiles, OfOtherHostsAndOtherPeopleStay) {
  const TempDir dir;
  const std::vector<std::string> others = {".cairn-tmp-00000000-1-0", ".cairn-tmp-1-0",
                                           ".cairn-lock"};
  for (const std::string& name : others) write_file(dir / name, "theirs");
  must(open_at(dir.path())->put("key", as_bytes("x")));
  for (const std::string& name : others) EXPECT_TRUE(std::filesystem::exists(dir / name)) << name;
}

TEST(TemporaryFiles, GoWhereverTheWriterWasKilled) {
  const auto save = [](FileSystem& fs) -> Result<void> {
    CAIRN_TRY_ASSIGN(const auto store, open_local_store(fs, "/"));
    CAIRN_TRY_ASSIGN(const auto writer, store->create("key", 4));
    CAIRN_TRY(writer->write_at(0, as_bytes("data")));
    CAIRN_TRY(writer->finish());
    return store->sync();
  };
  LossyFileSystem whole;
  must(save(whole));
  for (std::size_t n = 0; n <= whole.operations().size(); ++n) {
    LossyFileSystem fs;
    fs.crash_after(n);
    save(fs).ignore_error("it was killed");
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const auto left = seed == 0 ? fs.after_kill() : fs.after_power_cut(seed);
      must(save(*left));
      const auto files = left->snapshot();
      EXPECT_TRUE(files.size() == 1 && files.contains("/key")) << n << " " << seed;
    }
  }
}

TEST(TemporaryFiles, AreNotTakenFromAWriterThatHasJustMadeOne) {
  const TempDir dir;
  const auto write_many = [&](const std::string& key) {
    for (int round = 0; round < 200; ++round) {
      EXPECT_TRUE(open_at(dir.path())->put(key, as_bytes("x"))) << key << " " << round;
    }
  };
  std::vector<std::thread> writers;
  for (const char* key : {"a", "b", "c", "d"}) writers.emplace_back(write_many, key);
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(temporary_names(dir.path()).size(), 0u);
}

}  // namespace
}  // namespace cairn::storage
