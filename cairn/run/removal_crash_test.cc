// SPDX-License-Identifier: Apache-2.0
// Removals and cleaning over a disk that loses what was not made durable: cut off after every
// operation, with every operation failing, and with somebody else in between.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/load/load.h"
#include "cairn/run/discovery.h"
#include "cairn/run/leftovers.h"
#include "cairn/run/mark.h"
#include "cairn/run/removal.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

using testing::LossyFileSystem;
using testing::must;

/// A runtime on one disk. Nobody waits for real.
struct Machine {
  explicit Machine(storage::FileSystem& fs)
      : runtime({.threads = 1, .file_system = &fs, .clock = &clock}) {}
  testing::ManualClock clock;
  Runtime runtime;
};

Tree tree_of(std::uint64_t seed) {
  testing::Random random(seed);
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {5, 3})},
                     {"b", testing::random_array(random, DType::kInt8, {7})}});
}

Result<SaveReport> save(storage::FileSystem& fs, int step, bool temporary = false) {
  Machine machine(fs);
  const std::string name = "run-" + std::to_string(step);
  const auto number = static_cast<std::uint64_t>(step);
  Mark mark = make_mark(step, temporary, machine.clock.wall());
  mark.lineage = Lineage{.number = number, .history = {{0, number - 1}}, .name = name};
  const SaveInternals marked{.mark = dump_mark(mark)};
  return save_checkpoint({{"model", tree_of(number)}}, "/run/" + name, {}, machine.runtime,
                         &marked);
}

void put_file(LossyFileSystem& fs, const std::string& path, const std::string& text) {
  const auto file = must(
      fs.open(nullptr, path, {.access = storage::OpenOptions::Access::kReadWrite, .create = true}));
  must(file->write_at(0, as_bytes(text)));
  must(file->sync());
  const auto directory = must(fs.open(nullptr, path.substr(0, path.rfind('/')),
                                      {.access = storage::OpenOptions::Access::kDirectory}));
  must(directory->sync());
}

/// Steps of the checkpoints that a run finds; each of them must be whole, bit for bit.
std::vector<std::int64_t> found(storage::FileSystem& fs, const std::string& when) {
  Machine machine(fs);
  std::vector<std::int64_t> steps;
  for (const RunEntry& entry : must(list_run("/run", machine.runtime))) {
    if (!entry.marked || entry.torn) continue;
    const auto loaded = load(entry.path, {.prefix = "model"}, machine.runtime);
    EXPECT_TRUE(loaded) << when << ": " << loaded.error().to_string();
    if (!loaded) continue;
    EXPECT_EQ(testing::difference(loaded->tree, tree_of(static_cast<std::uint64_t>(*entry.step))),
              "")
        << when;
    steps.push_back(*entry.step);
  }
  return steps;
}

using Steps = std::vector<std::int64_t>;

/// What is left of ours, beside the two other checkpoints and the files of others.
std::string left_over(const LossyFileSystem& fs) {
  for (const auto& [path, content] : fs.snapshot()) {
    const bool expected = path.starts_with("/run/run-1/") || path.starts_with("/run/run-3/") ||
                          path.ends_with("/.cairn-lock") || path == "/" || path == "/run/" ||
                          path == "/run/run-2/" || path == "/run/run-2/config.json" ||
                          path == "/run/run-2/cairn.json";
    if (!expected) return path;
  }
  return "";
}

/// The removal of run-2, which is permanent and holds a file of others, or is temporary.
struct RemovalCase {
  bool shared = false;
  bool on_overlay = false;
};

class RemovalCrash : public ::testing::TestWithParam<RemovalCase> {
 protected:
  void SetUp() override {
    must(base_.make_directory(nullptr, "/run"));
    for (const int step : {1, 2, 3}) must(save(base_, step, step == 2 && !shared()));
    if (shared()) put_file(base_, "/run/run-2/config.json", "theirs");
    if (GetParam().on_overlay) base_.make_directories_unmovable();
  }

  static bool shared() { return GetParam().shared; }

  static Result<Removal> remove(storage::FileSystem& fs) {
    Machine machine(fs);
    return remove_checkpoint("/run", "/run/run-2", {.only_if_temporary = !shared()},
                             machine.runtime);
  }

  void check(LossyFileSystem& left, bool reported, const std::string& when) const {
    const Steps steps = found(left, when);
    EXPECT_TRUE(steps == Steps({3, 1}) || (!reported && steps == Steps({3, 2, 1}))) << when;
    const auto again = remove(left);
    // A second one finds nothing of ours.
    EXPECT_TRUE(again || again.error().reason() == "removal/foreign")
        << when << ": " << again.error().to_string();
    EXPECT_EQ(found(left, when + ", removed again"), Steps({3, 1}));
    Machine machine(left);
    must(clean_leftovers("/run", {}, machine.runtime));
    EXPECT_EQ(left_over(left), "") << when;
    if (shared()) {
      EXPECT_EQ(left.snapshot()["/run/run-2/config.json"], "theirs") << when;
    }
    EXPECT_TRUE(save(left, 2)) << when;
    EXPECT_EQ(found(left, when + ", saved again"), Steps({3, 2, 1}));
  }

  using Operation = LossyFileSystem::Operation;
  std::vector<Operation> operations_of_a_removal() const {
    const auto copy = base_.after_power_cut();
    const auto before = static_cast<std::ptrdiff_t>(copy->operations().size());
    must(remove(*copy));
    auto operations = copy->operations();
    operations.erase(operations.begin(), operations.begin() + before);
    return operations;
  }

  void cut_off_anywhere(std::optional<std::size_t> full_at) const {
    bool done = false;
    for (std::size_t n = 0; !done; ++n) {
      const auto disk = base_.after_power_cut();
      if (full_at) disk->fail_at(*full_at, ENOSPC);
      disk->crash_after(n);
      done = remove(*disk).has_value();
      const std::string when = "cut off after operation " + std::to_string(n);
      check(*disk->after_power_cut(), done, when);
      check(*disk->after_kill(), done, when + " (kill)");
      for (const std::uint64_t seed : {1u, 2u, 3u})
        check(*disk->after_power_cut(seed * 1000 + n), done, when + ", a part of it");
      ASSERT_FALSE(HasFailure());
    }
  }

  LossyFileSystem base_;
};

TEST_P(RemovalCrash, CutOffAnywhereItIsWholeOrGone) { cut_off_anywhere({}); }

TEST_P(RemovalCrash, OnADiskTooFullForATrashTooIfAllOfItIsOurs) {
  const auto operations = operations_of_a_removal();
  const auto made = std::ranges::find(operations, "make-directory", &Operation::name);
  ASSERT_NE(made, operations.end());
  const auto index = static_cast<std::size_t>(made - operations.begin());
  if (!shared()) return cut_off_anywhere(index);
  const auto disk = base_.after_power_cut();
  disk->fail_at(index, ENOSPC);
  EXPECT_EQ(testing::reason(remove(*disk)), "storage/no-space");
  EXPECT_EQ(found(*disk, "full"), Steps({3, 2, 1}));
}

TEST_P(RemovalCrash, AFailingOperationLeavesItWholeOrGone) {
  const std::size_t operations = operations_of_a_removal().size();
  for (const int error : {EIO, ENOSPC, EACCES, EROFS, EXDEV}) {
    for (std::size_t n = 0; n < operations; ++n) {
      const auto disk = base_.after_power_cut();
      disk->fail_at(n, error);
      const bool reported = remove(*disk).has_value();
      const std::string when =
          "errno " + std::to_string(error) + " at operation " + std::to_string(n);
      check(*disk->after_power_cut(), reported, when);
      check(*disk, reported, when + " (going on)");
      ASSERT_FALSE(HasFailure());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Directories, RemovalCrash,
                         ::testing::Values(RemovalCase{}, RemovalCase{.shared = true},
                                           RemovalCase{.on_overlay = true},
                                           RemovalCase{.shared = true, .on_overlay = true}),
                         [](const auto& test) {
                           return std::string(test.param.shared ? "Shared" : "Ours") +
                                  (test.param.on_overlay ? "OnAnOverlay" : "");
                         });

/// Does `work` again and again, each time on a fresh disk, with `meanwhile` before another one of
/// its operations; the last time it comes too late.
void with_something_in_between(
    const LossyFileSystem& base, const std::function<void(LossyFileSystem&)>& meanwhile,
    const std::function<void(storage::FileSystem&, LossyFileSystem&)>& work) {
  bool reached = true;
  for (std::size_t n = 0; reached && !::testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE("at operation " + std::to_string(n));
    const auto disk = base.after_power_cut();
    reached = false;
    const auto disturbed = testing::interpose(*disk, [&](std::size_t operation) {
      if (operation != n) return;
      reached = true;
      meanwhile(*disk);
    });
    work(*disturbed, *disk);
  }
}

void make_run(LossyFileSystem& disk, int checkpoints) {
  must(disk.make_directory(nullptr, "/run"));
  for (int step = 1; step <= checkpoints; ++step) must(save(disk, step));
}

Result<Removal> remove_first(storage::FileSystem& fs) {
  Machine machine(fs);
  return remove_checkpoint("/run", "/run/run-1", {}, machine.runtime);
}

TEST(RemovalMeanwhile, ASaveIntoTheSameDirectoryIsNeverLost) {
  LossyFileSystem base;
  make_run(base, 1);
  int removals = 0;
  const auto remove = [&](LossyFileSystem& disk) {
    const auto removed = remove_first(disk);
    if (!removed || *removed != Removal::kRemoved) return;
    ++removals;
    Machine machine(disk);
    must(empty_trash("/run", machine.runtime));
  };
  with_something_in_between(base, remove, [](storage::FileSystem& fs, LossyFileSystem& disk) {
    const auto saved = save(fs, 1);
    ASSERT_TRUE(saved) << saved.error().to_string();
    EXPECT_EQ(found(disk, "saved"), Steps({1}));
  });
  EXPECT_GT(removals, 0);
}

// Attempts are born in the trash.
TEST(RemovalMeanwhile, EmptyingTheTrashHarmsNoSaveIntoTheRunItself) {
  LossyFileSystem base;
  make_run(base, 2);
  must(remove_first(base));
  const auto empty = [](LossyFileSystem& disk) {
    Machine machine(disk);
    empty_trash("/run", machine.runtime).ignore_error("the save may hold the lock");
  };
  with_something_in_between(base, empty, [](storage::FileSystem& fs, LossyFileSystem&) {
    Machine machine(fs);
    const auto saved = save_tree(tree_of(7), "/run", {}, machine.runtime, "model");
    EXPECT_TRUE(saved) << saved.error().to_string();
  });
}

TEST(RemovalMeanwhile, APinEndsOnAWholeCheckpointOrFails) {
  LossyFileSystem base;
  make_run(base, 1);
  const auto remove = [](LossyFileSystem& disk) {
    remove_first(disk).ignore_error("or it is pinned");
  };
  with_something_in_between(base, remove, [](storage::FileSystem& fs, LossyFileSystem& disk) {
    Machine machine(fs);
    const bool pinned = pin("/run/run-1", "", machine.runtime).has_value();
    EXPECT_EQ(found(disk, "pinned"), pinned ? Steps({1}) : Steps());
  });
}

/// A run with a torn newest checkpoint, a dead attempt beside a good one, a replaced temporary one
/// and trash.
class CleaningCrash : public ::testing::Test {
 protected:
  void SetUp() override {
    must(base_.make_directory(nullptr, "/run"));
    must(save(base_, 1, true));
    must(save(base_, 2));
    must(save(base_, 3));
    {
      Machine machine(base_);
      // Saves nobody will finish: into a new directory, and into one that is good.
      torn_ =
          must(begin_attempt(base_, clock_, testing::local("/run/run-4"), {.prefixes = {"model"}}));
      added_ =
          must(begin_attempt(base_, clock_, testing::local("/run/run-2"), {.prefixes = {"other"}}));
      must(save(base_, 5));
      must(remove_checkpoint("/run", "/run/run-5", {}, machine.runtime));
    }
    put_file(base_, "/run/run-4/metadata.json", R"({"step": 4, "is_temporary": false})");
    killed_ = base_.after_kill();
  }

  static std::string latest(storage::FileSystem& fs) {
    Machine machine(fs);
    return must(find_latest_checkpoint("/run", machine.runtime)).value_or("none");
  }

  testing::ManualClock clock_;
  LossyFileSystem base_;
  std::unique_ptr<Attempt> torn_;
  std::unique_ptr<Attempt> added_;
  std::unique_ptr<LossyFileSystem> killed_;
};

TEST_F(CleaningCrash, FindsEverythingAndRemovesIt) {
  Machine machine(*killed_);
  const auto found_ones = must(find_leftovers("/run", machine.runtime));
  std::vector<std::string> told;
  for (const Leftover& leftover : found_ones) {
    const char* const kinds[] = {"attempt", "trash", "temporary"};
    const std::size_t hidden = leftover.path.find("/.cairn-");
    told.push_back(std::string(kinds[static_cast<int>(leftover.kind)]) + " " +
                   leftover.path.substr(0, hidden == std::string::npos ? hidden : hidden + 8));
    EXPECT_EQ(leftover.problem, "");
  }
  EXPECT_EQ(told, (std::vector<std::string>{"trash /run/.cairn-", "attempt /run/run-2/.cairn-",
                                            "attempt /run/run-4/.cairn-", "temporary /run/run-1"}));
  EXPECT_EQ(must(clean_leftovers("/run", {}, machine.runtime)).size(), found_ones.size());
  EXPECT_TRUE(must(find_leftovers("/run", machine.runtime)).empty());
  EXPECT_EQ(found(*killed_, "cleaned"), Steps({3, 2}));
  EXPECT_EQ(latest(*killed_), "/run/run-3");
  const auto files = killed_->snapshot();
  EXPECT_TRUE(files.contains("/run/run-4/metadata.json.torn"));
  EXPECT_FALSE(files.contains("/run/run-4/metadata.json"));
}

TEST_F(CleaningCrash, NeverTakesWhatIsLeftOfATornOneForGood) {
  bool done = false;
  for (std::size_t n = 0; !done; ++n) {
    const auto disk = killed_->after_kill();
    disk->crash_after(n);
    {
      Machine machine(*disk);
      done = clean_leftovers("/run", {}, machine.runtime).has_value();
    }
    const std::string when = "cut off after operation " + std::to_string(n);
    for (const auto& left : {disk->after_kill(), disk->after_power_cut(n + 1)}) {
      const Steps steps = found(*left, when);
      EXPECT_TRUE(steps == Steps({3, 2}) || steps == Steps({3, 2, 1})) << when;
      EXPECT_EQ(latest(*left), "/run/run-3") << when;
      Machine machine(*left);
      must(clean_leftovers("/run", {}, machine.runtime));
      EXPECT_TRUE(must(find_leftovers("/run", machine.runtime)).empty()) << when;
      EXPECT_EQ(found(*left, when), Steps({3, 2}));
    }
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(CleaningCrash, TellsWhatItCouldNotRemoveAndGoesOn) {
  Machine machine(*killed_);
  const CommitGuard refuse = []() -> Result<std::shared_ptr<void>> {
    return Error(Code::kFailedPrecondition, "run/taken-over", "somebody else owns it");
  };
  for (const Leftover& leftover : must(clean_leftovers("/run", refuse, machine.runtime))) {
    const bool trash = leftover.kind == Leftover::Kind::kTrash;
    EXPECT_EQ(leftover.problem, trash ? "" : "somebody else owns it") << leftover.path;
  }
  EXPECT_EQ(found(*killed_, "refused"), Steps({3, 2, 1}));
}

TEST(CleaningAfterASave, LeavesNothingOfOneThatWasCutOffAnywhere) {
  LossyFileSystem base;
  must(base.make_directory(nullptr, "/run"));
  for (const int step : {1, 2}) must(save(base, step));
  bool done = false;
  for (std::size_t n = 0; !done; ++n) {
    const auto disk = base.after_kill();
    disk->crash_after(n);
    done = save(*disk, 2).has_value();
    const auto left = disk->after_kill();
    Machine machine(*left);
    must(clean_leftovers("/run", {}, machine.runtime));
    for (const auto& [path, content] : left->snapshot()) {
      const bool attempt = path.find("/.cairn-") != std::string::npos && path.ends_with('/');
      EXPECT_FALSE(attempt) << path << " after operation " << n;
    }
    EXPECT_EQ(found(*left, "cleaned"), Steps({2, 1}));
  }
}

TEST_F(CleaningCrash, LeavesSavesAloneThatAreUnderWay) {
  Machine machine(base_);
  must(clean_leftovers("/run", {}, machine.runtime));
  EXPECT_TRUE(torn_->data().put("model/x", as_bytes("x")));
  must(added_->commit({}));
}

}  // namespace
}  // namespace cairn
