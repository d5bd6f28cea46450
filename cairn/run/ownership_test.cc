// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/ownership.h"

#include <csignal>
#include <filesystem>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cairn/manager/checkpointer.h"
#include "cairn/run/mark.h"
#include "cairn/run/removal.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LossyFileSystem;
using testing::must;
using testing::reason;
using testing::TempDir;

TEST(OwnerFile, ComesBackAsItWasWritten) {
  const OwnerFile owner{"abc", 7, "node-1", 4711, "boot", "2026-01-01T00:00:00.000000+00:00"};
  EXPECT_EQ(must(parse_owner_file(dump_owner_file(owner))), owner);
}

TEST(OwnerFile, RefusesWhatIsNone) {
  for (const char* text :
       {"", "[]", "{}", R"({"run_id": 3, "host": "", "boot_id": "", "time": ""})",
        R"({"run_id": "", "host": "", "boot_id": "", "time": "", "epoch": -1, "process": 1})",
        R"({"run_id": "", "host": "", "boot_id": "", "time": "", "epoch": 1})"}) {
    EXPECT_EQ(reason(parse_owner_file(text)), "owner/bad-file") << text;
  }
}

/// Another job: takes the run and says its epoch; then, whenever it is asked, whether it may save.
/// It begins as a copy of this process, so it is made before there are threads.
class OtherJob {
 public:
  explicit OtherJob(const std::string& base) {
    EXPECT_EQ(::pipe(to_), 0);
    EXPECT_EQ(::pipe(from_), 0);
    pid_ = ::fork();
    if (pid_ == 0) live(base);
    ::close(to_[0]);
    ::close(from_[1]);
  }
  ~OtherJob() {
    kill();
    ::close(to_[1]);
    ::close(from_[0]);
  }

  int answer() {
    int value = -1;
    EXPECT_EQ(::read(from_[0], &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
    return value;
  }
  bool may_save() {
    EXPECT_EQ(::write(to_[1], "?", 1), 1);
    return answer() == 1;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  [[noreturn]] void live(const std::string& base) {
    Runtime runtime;
    const auto owner = take_run(base, {.run_id = "theirs"}, runtime);
    say(owner ? static_cast<int>((*owner)->epoch()) : 0);
    for (char asked = 0; ::read(to_[0], &asked, 1) == 1;) say(owner && (*owner)->hold() ? 1 : 0);
    ::_exit(0);
  }
  void say(int value) const {
    if (::write(from_[1], &value, sizeof(value)) < 0) ::_exit(1);
  }

  int to_[2] = {-1, -1};
  int from_[2] = {-1, -1};
  pid_t pid_ = -1;
};

TEST(RunOwner, MakesTheDirectoryAndSaysWhoItIs) {
  TempDir dir;
  Runtime runtime;
  EXPECT_FALSE(must(find_owner(dir / "run", runtime)));
  const auto owner = must(take_run(dir / "run", {.run_id = "r1"}, runtime));
  const auto seen = must(find_owner(dir / "run", runtime));
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->file.run_id, "r1");
  EXPECT_EQ(seen->file.process, ::getpid());
  EXPECT_EQ(seen->file.epoch, owner->epoch());
  EXPECT_TRUE(seen->alive);
  EXPECT_TRUE(owner->hold());
}

TEST(RunOwner, MayBeReachedThroughALink) {
  TempDir dir;
  Runtime runtime;
  std::filesystem::create_directory(dir / "real");
  std::filesystem::create_directory_symlink(dir / "real", dir / "link");
  const auto owner = must(take_run(dir / "link", {}, runtime));
  EXPECT_EQ(must(take_run(dir / "real", {}, runtime)), owner);
}

TEST(RunOwner, OfOneProcessIsOneForAllOfIt) {
  TempDir dir;
  Runtime runtime;
  auto first = must(take_run(dir.path(), {}, runtime));
  auto second = must(take_run(dir.path() + "/", {.run_id = "another"}, runtime));
  EXPECT_EQ(first, second);
  EXPECT_EQ(second->run_id().size(), 32u) << "it was given none, and made one";
  first.reset();
  EXPECT_TRUE(second->hold());
  EXPECT_TRUE(must(find_owner(dir.path(), runtime))->alive);
  second.reset();
  EXPECT_FALSE(must(find_owner(dir.path(), runtime))->alive);
  EXPECT_EQ(must(take_run(dir.path(), {}, runtime))->epoch(), 2u);
}

TEST(RunOwner, IsLetGoAndTakenByManyThreads) {
  TempDir dir;
  Runtime runtime;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        const auto owner = take_run(dir.path(), {}, runtime);
        ASSERT_TRUE(owner) << owner.error().to_string();
        EXPECT_TRUE((*owner)->hold());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RunOwner, ASecondJobIsRefusedWithTheFirstOnesNameUntilItIsDead) {
  TempDir dir;
  OtherJob other(dir.path());
  Runtime runtime;
  ASSERT_EQ(other.answer(), 1);
  const auto refused = take_run(dir.path(), {}, runtime);
  ASSERT_EQ(reason(refused), "run/owned");
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  const auto seen = must(find_owner(dir.path(), runtime));
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("process " + std::to_string(other.pid())), HasSubstr(seen->file.host),
                    HasSubstr(seen->file.time)));
  other.kill();
  EXPECT_EQ(must(take_run(dir.path(), {}, runtime))->epoch(), 2u);
}

TEST(RunOwner, OneThatWasTakenOverCanDoNothingAnyMore) {
  TempDir dir;
  Runtime runtime;
  const auto owner = must(take_run(dir.path(), {.run_id = "old"}, runtime));
  const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2, 3}))}});
  SaveInternals owned{.run_id = owner->run_id()};
  owned.mark = dump_mark(make_mark(1, false, runtime.clock().wall()));
  owned.guard = owner->guard();
  must(save_checkpoint({{"", tree}}, dir / "run-1", {}, runtime, &owned));

  OwnerFile stranger = must(find_owner(dir.path(), runtime))->file;
  stranger.epoch += 1;
  stranger.process = 4711;
  testing::write_file(dir / ".cairn-owner.json", dump_owner_file(stranger));
  const auto saved = save_checkpoint({{"", tree}}, dir / "run-2", {}, runtime, &owned);
  ASSERT_EQ(reason(saved), "run/taken-over");
  EXPECT_THAT(saved.error().message(), HasSubstr("process 4711"));
  EXPECT_FALSE(std::filesystem::exists(dir / "run-2/cairn.json"));
  EXPECT_EQ(
      reason(remove_checkpoint(dir.path(), dir / "run-1", {.guard = owner->guard()}, runtime)),
      "run/taken-over");
  EXPECT_EQ(must(take_run(dir.path(), {}, runtime)), owner) << "it does not help";
  auto back = must(take_run(dir.path(), {.take_over = true}, runtime));
  EXPECT_NE(back, owner);
  EXPECT_TRUE(back->hold());
  EXPECT_EQ(must(take_run(dir.path(), {.take_over = true}, runtime)), back);
  EXPECT_EQ(reason(owner->hold()), "run/taken-over");
  std::filesystem::remove(dir / ".cairn-owner.json");
  EXPECT_EQ(reason(back->hold()), "run/owner-gone");
}

TEST(RunOwner, TakesOverFromOneThatLivesIfItIsTold) {
  TempDir dir;
  OtherJob other(dir.path());
  Runtime runtime;
  ASSERT_EQ(other.answer(), 1);
  EXPECT_TRUE(other.may_save());
  const auto owner = must(take_run(dir.path(), {.take_over = true}, runtime));
  EXPECT_EQ(owner->epoch(), 2u);
  EXPECT_TRUE(owner->hold());
  EXPECT_EQ(must(find_owner(dir.path(), runtime))->file.process, ::getpid());
  EXPECT_FALSE(other.may_save());
}

TEST(RunOwner, ACheckpointerTakesOverOnlyIfItIsTold) {
  TempDir dir;
  OtherJob other(dir.path());
  ASSERT_EQ(other.answer(), 1);
  const auto runtime = std::make_shared<Runtime>();
  for (const bool told : {false, true}) {
    const auto run =
        must(Checkpointer::make({.base_path = dir.path(), .take_over = told}, runtime));
    const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2}))}});
    EXPECT_EQ(reason(run->on_step(1, tree, {.force = true})), told ? "none" : "run/owned");
    must(run->wait_until_finished());
  }
  EXPECT_FALSE(other.may_save());
}

TEST(RunOwner, SavesIntoTheRunDirectoryItselfAreHisToo) {
  TempDir dir;
  Runtime runtime;
  const auto owner = must(take_run(dir.path(), {}, runtime));
  const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2, 3}))}});
  const SaveInternals owned{.guard = owner->guard()};
  must(save_checkpoint({{"model", tree}}, dir.path(), {}, runtime, &owned));
}

TEST(RunOwner, CutOffAnywhereTheNextOneTakesIt) {
  testing::ManualClock clock;
  LossyFileSystem base;
  must(base.make_directory(nullptr, "/run"));
  bool done = false;
  for (std::size_t n = 0; !done; ++n) {
    const auto disk = base.after_power_cut();
    disk->crash_after(n);
    {
      Runtime runtime({.threads = 1, .file_system = disk.get(), .clock = &clock});
      const auto owner = take_run("/run", {.run_id = "a"}, runtime);
      done = owner.has_value();
    }
    const auto left = disk->after_power_cut(n);
    Runtime runtime({.threads = 1, .file_system = left.get(), .clock = &clock});
    const auto next = take_run("/run", {.run_id = "b"}, runtime);
    ASSERT_TRUE(next) << "cut off after operation " << n << ": " << next.error().to_string();
    EXPECT_TRUE((*next)->epoch() == 2 || (!done && (*next)->epoch() == 1));
  }
}

TEST(StaleRun, DiscoveryNamesAnotherRun) {
  TempDir dir;
  std::vector<std::string> events;
  Runtime runtime(
      {.threads = 1, .log = [&](const LogEntry& log) { events.emplace_back(log.event); }});
  const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2, 3}))}});
  for (const auto& [step, run_id] : {std::pair(9, "old"), std::pair(2, "new")}) {
    const auto owner = must(take_run(dir.path(), {.run_id = run_id}, runtime));
    SaveInternals owned{.run_id = run_id};
    owned.mark = dump_mark(make_mark(step, false, runtime.clock().wall()));
    must(save_checkpoint({{"", tree}}, dir / ("run-" + std::to_string(step)), {}, runtime, &owned));
    events.clear();
    EXPECT_EQ(must(find_latest_checkpoint(dir.path(), runtime)), dir / "run-9");
  }
  EXPECT_EQ(events, std::vector<std::string>{"discovery/other-run"});
}

}  // namespace
}  // namespace cairn
