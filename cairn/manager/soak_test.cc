// SPDX-License-Identifier: Apache-2.0
// A long life in one process: memory, files and threads stay what they were.
#include <algorithm>
#include <fstream>
#include <memory>

#include <dirent.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "cairn/async/background.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;

// Sanitizers keep what is freed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

std::size_t count_in(const char* folder) {
  std::size_t count = 0;
  DIR* const open = opendir(folder);
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  in >> size >> resident;
  return resident * 4096;
}

constexpr std::uint64_t kStateBytes = 64 * 4 * (16 + 27) * 12 / 2;

Tree state_of(std::uint64_t step) {
  testing::Random random(step % 7);
  std::vector<std::pair<Key, Tree>> leaves;
  for (int i = 0; i < 12; ++i) {
    leaves.emplace_back("w" + std::to_string(i),
                        testing::random_array(random, DType::kFloat32, {64, 16 + i}));
  }
  return Tree::dict(std::move(leaves));
}

TEST(Soak, FiveHundredSavesAndLoadsLeaveNothingBehind) {
  constexpr std::int64_t kSaves = 500;
  testing::TempDir dir;
  const auto runtime = std::make_shared<Runtime>(RuntimeOptions{
      .threads = 3, .staging_bytes = 8 * kMiB, .staging_idle = std::chrono::hours(1)});
  const auto manager = std::make_shared<AsyncCheckpointManager>(
      AsyncManagerOptions{.while_saving = WhileSaving::kQueue}, runtime);
  const auto run = must(Checkpointer::make({.base_path = dir / "run",
                                            .step_policies = {{.every = 1}},
                                            .manager = manager,
                                            .retention = {.keep_last_n = 2}},
                                           runtime));
  std::size_t files = 0;
  std::size_t threads = 0;
  std::uint64_t resident = 0;
  for (std::int64_t step = 1; step <= kSaves; ++step) {
    must(run->on_step(step, state_of(static_cast<std::uint64_t>(step))));
    if (step % 5 == 0) {
      const auto loaded = must(run->load_checkpoint());
      ASSERT_EQ(testing::difference(state_of(static_cast<std::uint64_t>(step)), loaded.tree), "");
    }
    if (step % 50 == 0) {
      // Somebody verifies while the next save is written.
      const auto latest = must(find_latest_checkpoint(dir / "run", *runtime));
      must(run->on_step(step, state_of(0), {.force = true}));
      ASSERT_TRUE(
          must(verify(must(open_checkpoint(*latest, *runtime)), {}, *runtime)).damages.empty());
    }
    if (step != kSaves / 2) continue;
    must(run->wait_until_finished());
    wait_for_background();
    malloc_trim(0);
    files = count_in("/proc/self/fd");
    threads = count_in("/proc/self/task");
    resident = resident_bytes();
  }
  must(run->wait_until_finished());
  wait_for_background();
  malloc_trim(0);
  EXPECT_EQ(count_in("/proc/self/fd"), files);
  EXPECT_EQ(count_in("/proc/self/task"), threads);
  // Each load waits for what is in flight: never more than six states, and some for rounding.
  EXPECT_LE(runtime->staging().allocated(), 7 * kStateBytes);
  EXPECT_LE(runtime->staging().peak(), runtime->staging().limit());
  const std::uint64_t slack = std::max<std::uint64_t>(resident / 50, 8 * kMiB);
  if (!kSanitized) {
    EXPECT_LE(resident_bytes(), resident + slack);
  }
  EXPECT_EQ(must(list_run(dir / "run", *runtime)).size(), 2U);
}

}  // namespace
}  // namespace cairn
