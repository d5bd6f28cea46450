// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/commit_guard.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "cairn/commit/posix/directory.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/must.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;
using testing::TempDir;

Tree a_tree() { return Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2, 3}))}}); }

bool can_be_locked(const std::string& path) {
  const auto directory = Directory::open(storage::posix_file_system(), testing::local(path), false);
  return directory &&
         DirectoryLock::acquire(*directory, system_clock(), std::chrono::nanoseconds(0));
}

/// Looks at the destination when it is taken and when it is let go.
struct Witness {
  explicit Witness(std::string where) : path(std::move(where)) {}

  CommitGuard guard() {
    return [this]() -> Result<std::shared_ptr<void>> {
      ++taken;
      there_before = std::filesystem::exists(path + "/cairn.json");
      free_before = can_be_locked(path);
      return std::shared_ptr<void>(this, [](Witness* self) {
        ++self->released;
        self->there_after = std::filesystem::exists(self->path + "/metadata.json");
      });
    };
  }

  std::string path;
  int taken = 0;
  int released = 0;
  bool there_before = false;
  bool free_before = false;
  bool there_after = false;
};

TEST(CommitGuard, IsHeldFromBeforeTheLockUntilEverythingIsInPlace) {
  TempDir dir;
  Runtime runtime;
  Witness witness(dir / "run-1");
  const SaveInternals internals{.mark = "{}", .guard = witness.guard()};
  must(save_checkpoint({{"", a_tree()}}, dir / "run-1", {}, runtime, &internals));
  EXPECT_EQ(witness.taken, 1);
  EXPECT_EQ(witness.released, 1);
  EXPECT_FALSE(witness.there_before);
  EXPECT_TRUE(witness.free_before) << "the destination's lock was taken before the guard";
  EXPECT_TRUE(witness.there_after) << "the guard was let go before the mark was in place";
}

Result<std::shared_ptr<void>> refuse() {
  return Error(Code::kFailedPrecondition, "run/taken-over", "somebody else owns it");
}

TEST(CommitGuard, ItsErrorRefusesTheSaveAndLeavesNothing) {
  TempDir dir;
  Runtime runtime;
  for (const std::string name : {"run-1", "one.safetensors"}) {
    const std::string path = dir / name;
    const SaveInternals internals{.guard = refuse};
    EXPECT_EQ(reason(save_checkpoint({{"", a_tree()}}, path, {}, runtime, &internals)),
              "run/taken-over");
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST(CommitGuard, OfRankZeroCountsForAllRanks) {
  TempDir dir;
  for (const bool refused_by_leader : {true, false}) {
    testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
      Runtime runtime({.threads = 1, .coordinator = &coordinator});
      SaveInternals internals;
      if ((runtime.rank() == 0) == refused_by_leader) internals.guard = refuse;
      const auto saved = save_checkpoint({{"", a_tree()}}, dir / "run-1", {}, runtime, &internals);
      EXPECT_EQ(reason(saved), refused_by_leader ? "run/taken-over" : "none");
    });
  }
}

TEST(CommitGuard, OfTwoBothAreAskedInTurnAndHeld) {
  std::string asked;
  const auto guard = [&](const std::string& name) -> CommitGuard {
    return [&asked, name]() -> Result<std::shared_ptr<void>> {
      asked += name;
      if (name == "no") return refuse();
      return std::shared_ptr<void>(&asked, [&asked, name](void*) { asked += "-" + name; });
    };
  };
  {
    const auto held = both_guards(guard("a"), guard("b"))();
    ASSERT_TRUE(held);
    EXPECT_EQ(asked, "ab");
  }
  EXPECT_EQ(asked, "ab-b-a");
  EXPECT_EQ(reason(both_guards(guard("no"), guard("c"))()), "run/taken-over");
  EXPECT_EQ(asked, "ab-b-ano");
  EXPECT_TRUE(both_guards({}, {})());
}

}  // namespace
}  // namespace cairn
