// SPDX-License-Identifier: Apache-2.0
// The crash tests of the commit: power cuts and kills after every operation, failures of every
// operation, readers and other writers in between.
#include "cairn/commit/posix/file_attempt.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cairn/commit/posix/attempt_files.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/manifest/checkpoint_metadata.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::difference;
using testing::LossyFileSystem;
using testing::must;

Tree tree_of(std::uint64_t seed) {
  testing::Random random(seed);
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {5, 3})},
                     {"b", testing::random_array(random, DType::kInt8, {7})},
                     {"step", Value(Integer(static_cast<std::int64_t>(seed)))}});
}

struct Case {
  std::string layout;
  bool mark;
  bool on_overlay = false;
};

std::string name_of(const Case& test) {
  return test.layout + (test.mark ? "Marked" : "") + (test.on_overlay ? "OnAnOverlay" : "");
}
void PrintTo(const Case& test, std::ostream* out) { *out << name_of(test); }

SaveOptions options_of(const Case& test, std::uint64_t seed) {
  SaveOptions options{.layout = test.layout};
  options.chunk_bytes = 32;
  options.shard_size = 40;
  options.metadata = Json(Json::Object{{"seed", seed}});
  return options;
}

/// Nobody waits for real: who holds a lock here does not let go while another runs.
Result<SaveReport> save_seed(storage::FileSystem& fs, const Case& test, std::uint64_t seed,
                             const std::string& path = "/run/c") {
  testing::ManualClock clock;
  Runtime runtime({.threads = 1, .file_system = &fs, .clock = &clock});
  SaveInternals internals;
  if (test.mark) internals.mark = "{\"step\": " + std::to_string(seed) + "}";
  return save_checkpoint({{"model", tree_of(seed)}, {"tx", tree_of(seed + 100)}}, path,
                         options_of(test, seed), runtime, &internals);
}

/// checkpoint_metadata.json and mark are those of the tree.
void expect_one_commit(const Loaded& loaded, std::uint64_t seed, const std::string& when) {
  const auto description = parse_checkpoint_metadata(loaded.description.value_or("null"));
  ASSERT_TRUE(description) << when << ": " << description.error().to_string();
  EXPECT_EQ(description->custom_metadata, Json(Json::Object{{"seed", seed}})) << when;
  if (loaded.mark) {
    EXPECT_EQ(*loaded.mark, "{\"step\": " + std::to_string(seed) + "}") << when;
  }
}

/// Which save a reader sees: 0 for none. Fails the test for a mixture or an error.
std::uint64_t seen(storage::FileSystem& fs, const std::string& when,
                   const std::string& path = "/run/c") {
  Runtime runtime({.threads = 1, .file_system = &fs});
  const auto checkpoint = open_checkpoint(path, runtime);
  if (!checkpoint) {
    const std::string_view reason = checkpoint.error().reason();
    EXPECT_TRUE(reason == "checkpoint/not-found" || reason == "checkpoint/not-a-checkpoint")
        << when << ": " << checkpoint.error().to_string();
    return 0;
  }
  std::uint64_t found = 0;
  for (const std::uint64_t seed : {1ULL, 2ULL, 3ULL}) {
    const auto model = load(*checkpoint, {.prefix = "model"}, runtime);
    const auto tx = load(*checkpoint, {.prefix = "tx", .description = true}, runtime);
    EXPECT_TRUE(model && tx) << when << ": "
                             << (model ? tx.error().to_string() : model.error().to_string());
    if (!model || !tx) return 99;
    if (difference(model->tree, tree_of(seed)).empty() &&
        difference(tx->tree, tree_of(seed + 100)).empty()) {
      found = seed;
      expect_one_commit(*tx, seed, when);
    }
  }
  EXPECT_NE(found, 0u) << when << ": neither the old nor the new checkpoint";
  return found;
}

bool is_of_an_attempt(const std::string& path) {
  return path.find("/.cairn-") != std::string::npos && !path.ends_with("/.cairn-lock");
}

std::string left_over(const LossyFileSystem& fs) {
  std::string names;
  for (const auto& [path, content] : fs.snapshot()) {
    if (is_of_an_attempt(path)) names += path + " ";
  }
  return names;
}

/// Without the attempts, and who had the lock last.
std::map<std::string, std::string> visible(const LossyFileSystem& fs) {
  auto files = fs.snapshot();
  std::erase_if(files, [](const auto& file) {
    return is_of_an_attempt(file.first) || file.first.ends_with("/.cairn-lock");
  });
  return files;
}

using Operations = std::vector<LossyFileSystem::Operation>;

/// Does a crash after the first n leave anything else than one after n - 1?
bool is_worth_a_crash(const Operations& operations, std::size_t n) {
  return n == 0 || n == operations.size() || operations[n - 1].changes || operations[n].changes;
}

class Crash : public ::testing::TestWithParam<Case> {
 protected:
  // The file system after a first save, and the operations of a second one.
  void SetUp() override {
    ASSERT_TRUE(base_.make_directory(nullptr, "/run"));
    ASSERT_TRUE(save_seed(base_, GetParam(), 1));
    if (GetParam().on_overlay) base_.make_directories_unmovable();
    const auto copy = base_.after_power_cut();
    ASSERT_EQ(seen(*copy, "after the first save"), 1u);
    const std::size_t before = copy->operations().size();
    ASSERT_TRUE(save_seed(*copy, GetParam(), 2));
    operations_ = copy->operations();
    operations_.erase(operations_.begin(),
                      operations_.begin() + static_cast<std::ptrdiff_t>(before));
  }

  // The error says where, and nothing has changed but for what was decided.
  void check_refusal(const Error& error, const LossyFileSystem& disk, const std::string& when) {
    const std::string text = error.to_string();
    EXPECT_NE(text.find("/run/c"), std::string::npos) << when << ": " << text;
    if (text.find("the save was decided") != std::string::npos) return;
    EXPECT_EQ(visible(disk), visible(base_)) << when;
    const std::string left = left_over(disk);
    EXPECT_TRUE(left.empty() || left == left_over(*base_.after_power_cut())) << when << left;
  }

  // A save is old or new, the next one succeeds, and nothing is left of the torn one.
  void check_survivor(LossyFileSystem& left, bool reported, const std::string& when) {
    const std::uint64_t found = seen(left, when);
    EXPECT_TRUE(found == 2 || (!reported && found == 1)) << when << ": found " << found;
    const auto again = save_seed(left, GetParam(), 3);
    ASSERT_TRUE(again) << when << ": " << again.error().to_string();
    EXPECT_EQ(seen(left, when + ", saved again"), 3u);
    EXPECT_EQ(left_over(left), "") << when;
  }

  LossyFileSystem base_;
  Operations operations_;
};

TEST_P(Crash, APowerCutAfterAnyOperationLeavesTheOldOrTheNew) {
  for (std::size_t n = 0; n <= operations_.size(); ++n) {
    if (!is_worth_a_crash(operations_, n)) continue;
    const auto disk = base_.after_power_cut();
    disk->crash_after(n);
    const bool reported = save_seed(*disk, GetParam(), 2).has_value();
    const std::string when = "power cut after operation " + std::to_string(n);
    check_survivor(*disk->after_power_cut(), reported, when);
    check_survivor(*disk->after_kill(), reported, when + " (kill)");
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      check_survivor(*disk->after_power_cut(seed * 1000 + n), reported,
                     when + ", subset " + std::to_string(seed));
    }
    if (HasFailure()) return;
  }
}

TEST_P(Crash, AFailingOperationIsReportedAndTheOldOneStays) {
  for (const int error : {EIO, ENOSPC, EDQUOT, EACCES, EROFS, EXDEV, ETIMEDOUT}) {
    for (std::size_t n = 0; n < operations_.size(); ++n) {
      const auto disk = base_.after_power_cut();
      disk->fail_at(n, error);
      const auto saved = save_seed(*disk, GetParam(), 2);
      const std::string when =
          "errno " + std::to_string(error) + " at operation " + std::to_string(n);
      const std::uint64_t found = seen(*disk, when);
      EXPECT_TRUE(found == 2 || (found == 1 && !saved)) << when << ": found " << found;
      if (!saved) check_refusal(saved.error(), *disk, when);
      check_survivor(*disk->after_power_cut(), saved.has_value(), when);
      if (HasFailure()) return;
    }
  }
}

TEST_P(Crash, RecoveryInterruptedTwiceStillEnds) {
  const auto decision = std::ranges::find(operations_, "link", &LossyFileSystem::Operation::name) -
                        operations_.begin();
  for (auto n = static_cast<std::size_t>(decision); n <= operations_.size(); ++n) {
    if (!is_worth_a_crash(operations_, n)) continue;
    const auto torn = base_.after_power_cut();
    torn->crash_after(n);
    const bool reported = save_seed(*torn, GetParam(), 2).has_value();
    const auto first = torn->after_power_cut();
    const auto whole = first->after_power_cut();
    ASSERT_TRUE(recover(*whole, system_clock(), testing::local("/run/c")));
    const Operations recovery = whole->operations();
    // Every operation of it, although not after every cut.
    for (std::size_t m = n % 3; m <= recovery.size(); m += 3) {
      if (!is_worth_a_crash(recovery, m)) continue;
      const auto second = first->after_power_cut();
      second->crash_after(m);
      recover(*second, system_clock(), testing::local("/run/c")).ignore_error("it is interrupted");
      const auto third = second->after_power_cut(m + 1);
      third->crash_after((7 * m + n) % recovery.size());
      recover(*third, system_clock(), testing::local("/run/c"))
          .ignore_error("it is interrupted too");
      check_survivor(*third->after_power_cut(), reported,
                     "cut at " + std::to_string(n) + ", recovery at " + std::to_string(m));
      if (HasFailure()) return;
    }
  }
}

/// Which of the saves a load by path gives, which may open the checkpoint several times.
std::uint64_t loaded_seed(storage::FileSystem& fs, const std::string& path,
                          std::uint64_t last_seed) {
  Runtime runtime({.threads = 1, .file_system = &fs});
  const auto model = load(path, {.prefix = "model", .description = true}, runtime);
  if (!model) {
    ADD_FAILURE() << model.error().to_string();
    return 0;
  }
  for (std::uint64_t seed = 1; seed <= last_seed; ++seed) {
    if (!difference(model->tree, tree_of(seed)).empty()) continue;
    expect_one_commit(*model, seed, "load");
    return seed;
  }
  ADD_FAILURE() << "neither the old nor a new checkpoint";
  return 0;
}

TEST_P(Crash, ASaveAtAnyOperationOfAReaderIsNotNoticed) {
  bool reached = true;
  for (std::size_t n = 0; reached; ++n) {
    const auto disk = base_.after_power_cut();
    reached = false;
    const auto reading = testing::interpose(*disk, [&](std::size_t operation) {
      if (operation != n) return;
      reached = true;
      ASSERT_TRUE(save_seed(*disk, GetParam(), 2));
    });
    EXPECT_NE(loaded_seed(*reading, "/run/c", 2), 0u) << "saved at operation " << n;
    if (HasFailure()) return;
  }
}

TEST_P(Crash, AnotherSaveAtAnyOperationOfASaveLeavesOneOfThem) {
  bool reached = true;
  for (std::size_t n = 0; reached; ++n) {
    const auto disk = base_.after_power_cut();
    Result<SaveReport> inner = Error(Code::kInternal, "unset", "");
    reached = false;
    const auto writing = testing::interpose(*disk, [&](std::size_t operation) {
      if (operation != n) return;
      reached = true;
      inner = save_seed(*disk, GetParam(), 3);
    });
    const auto outer = save_seed(*writing, GetParam(), 2);
    const std::string when = "saved at operation " + std::to_string(n);
    const std::uint64_t found = seen(*disk, when);
    EXPECT_TRUE((outer && found == 2) || (inner && found == 3)) << when << ": found " << found;
    if (!outer) {
      EXPECT_EQ(outer.error().reason(), "commit/prefix-changed");
      EXPECT_EQ(found, 3u);
    }
    if (reached && !inner) {
      EXPECT_EQ(inner.error().reason(), "commit/lock-timeout");
      EXPECT_NE(inner.error().message().find("process"), std::string::npos);
    }
    if (HasFailure()) return;
  }
}

TEST_P(Crash, ARealProcessKilledAtAnyOperationLeavesTheOldOrTheNew) {
  testing::TempDir run;
  const std::string path = run / "c";
  storage::FileSystem& disk = storage::posix_file_system();
  ASSERT_TRUE(save_seed(disk, GetParam(), 1, path));
  bool killed = true;
  for (std::size_t n = 0; killed; ++n) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto deadly = testing::interpose(disk, [&](std::size_t operation) {
        if (operation == n) ::kill(::getpid(), SIGKILL);
      });
      ::_exit(save_seed(*deadly, GetParam(), 2, path) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed = WIFSIGNALED(status);
    EXPECT_TRUE(killed || WEXITSTATUS(status) == 0);
    const std::string when = "killed at operation " + std::to_string(n);
    const std::uint64_t found = seen(disk, when, path);
    EXPECT_TRUE(found == 2 || (killed && found == 1)) << when << ": found " << found;
    const auto again = save_seed(disk, GetParam(), 1, path);
    ASSERT_TRUE(again) << when << ": " << again.error().to_string();
    if (HasFailure()) return;
  }
}

TEST_P(Crash, AReaderInALoopNeverSeesAnErrorOrAMixture) {
  testing::TempDir run;
  const std::string path = run / "c";
  storage::FileSystem& disk = storage::posix_file_system();
  ASSERT_TRUE(save_seed(disk, GetParam(), 1, path));
  constexpr std::uint64_t kSaves = 100;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    std::uint64_t last = 1;
    while (!done && !HasFailure()) {
      const std::uint64_t found = loaded_seed(disk, path, kSaves);
      EXPECT_GE(found, last) << "an older one came back";
      last = found;
    }
  });
  for (std::uint64_t seed = 2; seed <= kSaves; ++seed) {
    EXPECT_TRUE(save_seed(disk, GetParam(), seed, path));
  }
  done = true;
  reader.join();
}

INSTANTIATE_TEST_SUITE_P(Layouts, Crash,
                         ::testing::Values(Case{std::string(kZarr2Layout), false},
                                           Case{std::string(kZarr2Layout), true},
                                           Case{std::string(kZarr2Layout), true, true},
                                           Case{std::string(kSafetensorsLayout), true}),
                         [](const auto& test) { return name_of(test.param); });

// What readers would refuse for its length must not be decided.
TEST(CommitLimits, AMarkThatIsTooLongIsRefusedAndTheOldCheckpointStays) {
  LossyFileSystem fs;
  must(save_seed(fs, {std::string(kZarr2Layout), true}, 1));
  testing::ManualClock clock;
  Runtime runtime({.threads = 1, .file_system = &fs, .clock = &clock});
  SaveInternals marked;
  marked.mark = "{\"step\": 2, \"note\": \"" + std::string(kMaxAttemptFileBytes, 'n') + "\"}";
  const auto saved = save_checkpoint({{"model", tree_of(2)}, {"tx", tree_of(102)}}, "/run/c", {},
                                     runtime, &marked);
  EXPECT_EQ(testing::reason(saved), "commit/file-too-large");
  EXPECT_EQ(seen(fs, "after a mark that is too long"), 1u);
  EXPECT_EQ(left_over(fs), "");
}

TEST(CommitLimits, AnOutcomeThatIsTooLongIsNotWritten) {
  Outcome outcome;
  outcome.commit = true;
  outcome.out.assign(1000, std::string(kMaxAttemptFileBytes / 1000, 'n'));
  EXPECT_EQ(testing::reason(dump_outcome(outcome)), "outcome/too-large");
}

// All entries go and as many come: the longest record can be replaced.
TEST(CommitLimits, WhateverARecordHoldsCanBeReplaced) {
  Record record;
  RecordPrefix prefix{"", "m", 1, "00", "id", {}};
  Outcome outcome;
  outcome.commit = true;
  for (int i = 0; i < 500'000; ++i)
    prefix.entries.push_back("n" + std::to_string(1'000'000 + i) + std::string(42, 'x'));
  outcome.in = outcome.out = prefix.entries;
  record.prefixes = {prefix};
  EXPECT_GT(must(dump_record(record)).size(), kMaxRecordBytes * 9 / 10);
  EXPECT_TRUE(parse_outcome(must(dump_outcome(outcome))));
}

}  // namespace
}  // namespace cairn
