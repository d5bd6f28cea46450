// SPDX-License-Identifier: Apache-2.0
// Programs end whenever they like: at every operation of a save, with or without waiting. What was
// good stays good, what is on its way is finished, and nobody hangs.
#include <atomic>
#include <cstdlib>
#include <latch>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cairn/async/background.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;

Tree state_of(std::uint64_t seed) {
  testing::Random random(seed);
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {50, 20})}});
}

std::unique_ptr<Checkpointer> make_run(const std::string& base, storage::FileSystem* fs = nullptr) {
  return must(Checkpointer::make(
      {.base_path = base,
       .step_policies = {{.every = 1}},
       .retention = {.keep_last_n = 1},
       .watch_requests = false},
      std::make_shared<Runtime>(RuntimeOptions{.threads = 2, .file_system = fs})));
}

/// The run's latest, as a new process sees it.
Tree latest(const std::string& base) { return must(make_run(base)->load_checkpoint()).tree; }

TEST(Shutdown, DroppingEverythingAtAnyOperationLosesNothing) {
  for (std::size_t n = 0;; n += 7) {
    testing::TempDir dir;
    must(must(make_run(dir / "run")->on_step(1, state_of(1)))->wait());
    wait_for_background();
    std::unique_ptr<Checkpointer> run;
    std::atomic<std::size_t> operations = 0;
    std::latch saved(1);
    const auto watched = testing::interpose(storage::posix_file_system(), [&](std::size_t) {
      if (operations++ != n || !is_background_thread()) return;
      saved.wait();  // on_step() has returned
      run.reset();   // from within its own work
    });
    run = make_run(dir / "run", watched.get());
    must(run->on_step(2, state_of(2)));
    saved.count_down();
    wait_for_background();
    EXPECT_EQ(testing::difference(state_of(2), latest(dir / "run")), "") << n;
    const bool ended = operations <= n;
    run.reset();
    wait_for_background();
    if (ended) break;
  }
}

TEST(Shutdown, ExitAtAnyOperationFinishesTheSave) {
  for (std::size_t n = 0; n < 60; n += 5) {
    testing::TempDir dir;
    must(must(make_run(dir / "run")->on_step(1, state_of(1)))->wait());
    wait_for_background();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::atomic<std::size_t> operations = 0;
      std::latch there(1);
      const auto watched = testing::interpose(storage::posix_file_system(), [&](std::size_t) {
        if (operations++ == n) there.count_down();
      });
      const auto run = make_run(dir / "run", watched.get());
      if (!run->on_step(2, state_of(2))) std::_Exit(2);
      if (operations <= n) std::exit(0);  // the end of the process waits
      there.wait();
      std::exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << n;
    EXPECT_EQ(testing::difference(state_of(2), latest(dir / "run")), "") << n;
  }
}

}  // namespace
}  // namespace cairn
