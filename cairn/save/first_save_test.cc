// SPDX-License-Identifier: Apache-2.0
// The first save into a directory, when it fails.
#include <filesystem>

#include <gtest/gtest.h>

#include "cairn/commit/posix/directory.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/save/save_async.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

namespace files = std::filesystem;
using testing::interpose;
using testing::LossyFileSystem;
using testing::ManualClock;
using testing::must;
using testing::reason;
using testing::TempDir;

Tree tree_of_one() { return Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2, 3}))}}); }

Result<std::shared_ptr<void>> refuse_it() {
  return Error(Code::kCancelled, "first/refused", "not this one");
}

Result<SaveReport> save_guarded(const std::string& path, CommitGuard guard, Runtime& runtime) {
  const SaveInternals internals{.guard = std::move(guard)};
  return save_checkpoint({{"", tree_of_one()}}, path, {}, runtime, &internals);
}

void expect_it_loads(const std::string& path, Runtime& runtime, const std::string& when) {
  const auto loaded = load(path, {}, runtime);
  EXPECT_TRUE(loaded) << when << ": " << loaded.error().to_string();
}

TEST(FirstSave, ThatFailsLeavesNothing) {
  TempDir dir;
  const auto runtime = std::make_shared<Runtime>();
  EXPECT_EQ(reason(save_guarded(dir / "a", refuse_it, *runtime)), "first/refused");
  const SaveInternals refused{.guard = refuse_it};
  const auto handle = must(save_async({{"", tree_of_one()}}, dir / "b", {}, runtime, &refused));
  EXPECT_EQ(reason(handle.wait()), "first/refused");
  EXPECT_TRUE(files::is_empty(dir.path()));
}

TEST(FirstSave, ThatFailsLeavesWhatWasThere) {
  TempDir dir;
  Runtime runtime;
  files::create_directory(dir / "mine");
  EXPECT_FALSE(save_guarded(dir / "mine", refuse_it, runtime));
  EXPECT_TRUE(files::is_directory(dir / "mine"));

  const CommitGuard busy = [&]() -> Result<std::shared_ptr<void>> {
    testing::write_file(dir / "new/notes.txt", "somebody's");
    return refuse_it();
  };
  EXPECT_FALSE(save_guarded(dir / "new", busy, runtime));
  EXPECT_TRUE(files::exists(dir / "new/notes.txt"));
}

constexpr const char* kPlace = "/c";

bool is_there(LossyFileSystem& disk) { return disk.stat(nullptr, kPlace, false).has_value(); }

/// Calls `meanwhile(disk)` before operation `n` of `save(runtime)`; were there so many?
template <typename Save, typename Meanwhile>
bool disturb(LossyFileSystem& disk, std::size_t n, const Save& save, const Meanwhile& meanwhile) {
  bool met = false;
  const auto disturbed = interpose(disk, [&](std::size_t operation) {
    if (operation != n) return;
    met = true;
    meanwhile(disk);
  });
  Runtime runtime({.threads = 1, .file_system = disturbed.get()});
  save(runtime);
  return met;
}

TEST(FirstSave, ThatFailsTakesNothingFromOneThatComesMeanwhile) {
  int times = 0;
  bool met = true;
  for (std::size_t n = 0; met; ++n) {
    LossyFileSystem disk;
    ManualClock clock;  // waits for no lock
    Runtime other({.threads = 1, .file_system = &disk, .clock = &clock});
    bool saved = false;
    met = disturb(
        disk, n, [](Runtime& runtime) { EXPECT_FALSE(save_guarded(kPlace, refuse_it, runtime)); },
        [&](LossyFileSystem&) { saved = save_tree(tree_of_one(), kPlace, {}, other).has_value(); });
    const std::string when = "before operation " + std::to_string(n);
    EXPECT_EQ(is_there(disk), saved) << when;
    if (!saved) continue;
    expect_it_loads(kPlace, other, when);
    ++times;
  }
  EXPECT_GT(times, 10);
}

TEST(FirstSave, GoesOnWhenItsDirectoryIsRemovedMeanwhile) {
  int removals = 0;
  bool met = true;
  for (std::size_t n = 0; met; ++n) {
    LossyFileSystem disk;
    must(disk.make_directory(nullptr, kPlace));
    const std::string when = "before operation " + std::to_string(n);
    met = disturb(
        disk, n,
        [&](Runtime& runtime) {
          const auto saved = save_tree(tree_of_one(), kPlace, {}, runtime);
          EXPECT_TRUE(saved) << when << ": " << saved.error().to_string();
        },
        [&](LossyFileSystem& under) {
          remove_unused(under, system_clock(), testing::local(kPlace))
              .ignore_error("most of the time in use");
          if (!is_there(under)) ++removals;
        });
    Runtime reader({.file_system = &disk});
    expect_it_loads(kPlace, reader, when);
  }
  EXPECT_GT(removals, 2);
}

}  // namespace
}  // namespace cairn
