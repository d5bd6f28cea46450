// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/save_async.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <new>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cairn/array/array.h"
#include "cairn/async/background.h"
#include "cairn/base/sha256.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save_internals.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/gate.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/temp_dir.h"
#include "cairn/tree/flatten.h"

namespace cairn {
namespace {

using testing::difference;
using testing::Gate;
using testing::must;

std::shared_ptr<Runtime> make_runtime(RuntimeOptions options = {}) {
  return std::make_shared<Runtime>(std::move(options));
}

Tree array_tree(DType dtype, const Shape& shape, std::uint64_t seed = 1) {
  testing::Random random(seed);
  return Tree::dict({{"w", testing::random_array(random, dtype, shape)}});
}

/// Overwrites the memory of all arrays.
void spoil(const Tree& tree) {
  for (const NamedLeaf& leaf : must(flatten(tree))) {
    const auto* array = std::get_if<ShardedArray>(&leaf.leaf);
    if (array == nullptr) continue;
    for (const Shard& shard : array->shards()) {
      Array data = shard.data;
      std::ranges::fill(data.mutable_bytes(), std::byte{0x5a});
    }
  }
}

class AsyncSaves : public ::testing::TestWithParam<std::string> {
 protected:
  SaveOptions options() const { return {.layout = GetParam()}; }
  testing::TempDir dir_;
};

TEST_P(AsyncSaves, SaveWhatWasThereAtTheCall) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    testing::RandomTreeOptions small{.dtypes = {DType::kFloat32, DType::kInt8, DType::kBfloat16}};
    const Tree tree = testing::random_tree(seed, small);
    const Tree same = testing::random_tree(seed, small);
    Gate gate;
    SaveOptions how = options();
    how.chunk_bytes = std::uint64_t{64} << (seed % 5);
    how.enable_validation = seed % 3 == 0;
    std::string name = std::to_string(seed);
    if (seed % 4 == 0 && GetParam() == kSafetensorsLayout) name += ".safetensors";
    const auto runtime = make_runtime({.file_system = gate.file_system()});
    const auto saving = save_async({{"model", tree}}, dir_ / name, how, runtime);
    ASSERT_TRUE(saving) << saving.error().to_string();
    spoil(tree);
    EXPECT_FALSE(saving->done());
    gate.open();
    const auto saved = saving->wait();
    ASSERT_TRUE(saved) << saved.error().to_string();
    EXPECT_EQ(saving->phase(), "done");
    const auto loaded = load(dir_ / name, {.validate = true}, *runtime);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    EXPECT_EQ(difference(same, loaded->tree), "") << seed;
  }
}

TEST_P(AsyncSaves, LetMoreThanTheBudgetThroughInPieces) {
  const auto runtime = make_runtime({.threads = 3, .staging_bytes = 16 * kMiB});
  const Tree tree = Tree::dict({{"big", array_tree(DType::kFloat32, {4096, 4099}, 1)},
                                {"long", array_tree(DType::kBfloat16, {9 * 1024 * 1024 + 3}, 2)},
                                {"small", array_tree(DType::kInt8, {7}, 3)}});
  const auto saving = save_async({{"", tree}}, dir_ / "c", options(), runtime);
  ASSERT_TRUE(saving) << saving.error().to_string();
  const auto saved = saving->wait();
  ASSERT_TRUE(saved) << saved.error().to_string();
  EXPECT_LE(runtime->staging().peak(), 16 * kMiB);
  EXPECT_EQ(runtime->staging().in_use(), 0U);
  EXPECT_EQ(difference(tree, must(load(dir_ / "c", {}, *runtime)).tree), "");
  EXPECT_EQ(saving->progress().done, saving->progress().total);
  EXPECT_EQ(saving->progress().total, saved->bytes);
}

TEST_P(AsyncSaves, DoNotCopyWhatIsLent) {
  testing::Random random(1);
  const auto memory =
      std::make_shared<Array>(testing::random_array(random, DType::kFloat32, {1000, 77}));
  const Array lent =
      must(Array::wrap(DType::kFloat32, {1000, 77}, Buffer::lend(memory->bytes(), memory)));
  const auto runtime = make_runtime();
  Gate gate;
  const auto slow = make_runtime({.file_system = gate.file_system()});
  const auto saving = save_async({{"", Tree::dict({{"w", lent}})}}, dir_ / "c", options(), slow);
  ASSERT_TRUE(saving) << saving.error().to_string();
  EXPECT_EQ(slow->staging().peak(), 0U);
  EXPECT_GT(memory.use_count(), 2) << "the save keeps it alive";
  gate.open();
  ASSERT_TRUE(saving->wait());
  EXPECT_EQ(difference(Tree::dict({{"w", *memory}}), must(load(dir_ / "c", {}, *runtime)).tree),
            "");
}

TEST_P(AsyncSaves, LeaveTheHashingOfWhatMayChangeToTheBackground) {
  const auto runtime = make_runtime({.staging_bytes = 16 * kMiB});
  testing::Random random(4);
  const Array large = testing::random_array(random, DType::kFloat32, {3000, 1700});
  const auto memory = std::make_shared<Array>(large);
  const Array lent =
      must(Array::wrap(DType::kFloat32, {3000, 1700}, Buffer::lend(memory->bytes(), memory)));
  const Tree tree = Tree::dict({{"lent", lent},
                                {"large", large},
                                {"one", testing::random_array(random, DType::kInt8, {7})},
                                {"none", must(Array::zeros(DType::kInt8, {0}))}});
  SaveOptions how = options();
  how.enable_validation = true;
  must(must(save_async({{"", tree}}, dir_ / "c", how, runtime)).wait());
  const auto checkpoint = must(open_checkpoint(dir_ / "c", *runtime));
  const OpenedPrefix& prefix = checkpoint.prefixes.front();
  const auto array = [&](const std::string& name) {
    return prefix.manifest.arrays.at(prefix.find(KeyPath({name})).value());
  };
  EXPECT_GT(array("large").pieces.size(), 1U);
  EXPECT_EQ(array("large").sha256, "");
  EXPECT_EQ(array("lent").sha256, sha256_hex(large.bytes()));
  EXPECT_EQ(array("one").sha256.size(), 64U);
  EXPECT_EQ(array("none").sha256, sha256_hex({}));
  must(load(checkpoint, {.validate = true}, *runtime));
}

TEST_P(AsyncSaves, TellListenersHowTheyEndedBeforeAnybodyWhoWaits) {
  Gate gate;
  const auto runtime = make_runtime({.file_system = gate.file_system()});
  const Tree tree = Tree::dict({{"w", array_tree(DType::kInt8, {100}, 1)}});
  const auto saving = save_async({{"", tree}}, dir_ / "c", options(), runtime);
  ASSERT_TRUE(saving) << saving.error().to_string();
  std::vector<Result<SaveReport>> told;
  saving->on_end([&](const Result<SaveReport>& how) { told.push_back(how); });
  EXPECT_TRUE(told.empty());
  gate.open();
  const auto saved = must(saving->wait());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(must(told[0]).attempt, saved.attempt);
  saving->on_end([&](const Result<SaveReport>& how) { told.push_back(how); });
  EXPECT_EQ(told.size(), 2U) << "who comes later hears it at once";
}

TEST_P(AsyncSaves, AreTheParentsInTheChildOfAFork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer does not follow a process with threads into its child";
#endif
  Gate gate;
  const auto runtime = make_runtime({.file_system = gate.file_system()});
  const auto done = must(save_async({{"", array_tree(DType::kInt8, {100})}}, dir_ / "before",
                                    options(), make_runtime()));
  must(done.wait());
  const auto saving =
      must(save_async({{"", array_tree(DType::kInt8, {100})}}, dir_ / "c", options(), runtime));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = testing::reason(saving.wait()) == "save/parent-process" && saving.done() &&
                         saving.phase() == "failed";
    ::_exit(refused && done.wait() && done.phase() == "done" ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  gate.open();
  must(saving.wait());
}

TEST_P(AsyncSaves, LetGoOfWhatTheyCopied) {
  const auto memory = std::make_shared<Array>(must(Array::zeros(DType::kInt8, {100})));
  Gate gate;
  {
    const Array borrowed =
        must(Array::wrap(DType::kInt8, {100}, Buffer::borrow(memory->mutable_bytes(), memory)));
    const auto saving = save_async({{"", Tree::dict({{"w", borrowed}})}}, dir_ / "c", options(),
                                   make_runtime({.file_system = gate.file_system()}));
    ASSERT_TRUE(saving);
  }
  EXPECT_EQ(memory.use_count(), 1);
  gate.open();
  wait_for_background();
}

TEST_P(AsyncSaves, AreWaitedForByWhoeverReadsThem) {
  const auto runtime = make_runtime();
  for (int round = 0; round < 20; ++round) {
    const Tree tree = array_tree(DType::kFloat32, {300, 300}, static_cast<std::uint64_t>(round));
    ASSERT_TRUE(save_async({{"", tree}}, dir_ / "c", options(), runtime));
    // The same place by another name, and another runtime.
    Runtime other;
    EXPECT_EQ(difference(tree, must(load((dir_ / "c") + "/../c/", {}, other)).tree), "");
  }
}

TEST_P(AsyncSaves, LoseNothingWhenEverybodyForgetsThem) {
  const Tree tree = array_tree(DType::kFloat32, {300, 300});
  {
    ASSERT_TRUE(save_async({{"", tree}}, dir_ / "c", options(), make_runtime()));
  }
  wait_for_background();
  Runtime runtime;
  EXPECT_EQ(difference(tree, must(load(dir_ / "c", {}, runtime)).tree), "");
}

TEST_P(AsyncSaves, KeepTheirErrorAndShowNothing) {
  const auto runtime = make_runtime();
  ASSERT_TRUE(
      save_async({{"", array_tree(DType::kInt8, {5}, 1)}}, dir_ / "c", options(), runtime)->wait());
  SaveOptions refused = options();
  SaveInternals internals;
  internals.guard = []() -> Result<std::shared_ptr<void>> {
    return Error(Code::kFailedPrecondition, "run/taken-over", "not you");
  };
  int calls = 0;
  refused.committed = [&](const SaveReport&) -> Result<void> {
    ++calls;
    return {};
  };
  const auto saving = save_async({{"", array_tree(DType::kInt8, {5}, 2)}}, dir_ / "c", refused,
                                 runtime, &internals);
  ASSERT_TRUE(saving);
  for (int time = 0; time < 2; ++time) {
    const auto result = saving->wait();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().reason(), "run/taken-over");
  }
  EXPECT_EQ(saving->phase(), "failed");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(difference(array_tree(DType::kInt8, {5}, 1), must(load(dir_ / "c", {}, *runtime)).tree),
            "");
}

TEST_P(AsyncSaves, CannotBeWaitedForInTheirOwnCallback) {
  std::promise<SaveHandle> made;
  std::string waited;
  SaveOptions calling = options();
  calling.committed = [&](const SaveReport&) -> Result<void> {
    waited = testing::reason(made.get_future().get().wait());
    return {};
  };
  const auto saving =
      must(save_async({{"", array_tree(DType::kInt8, {5})}}, dir_ / "c", calling, make_runtime()));
  made.set_value(saving);
  must(saving.wait());
  EXPECT_EQ(waited, "save/in-callback");
}

TEST_P(AsyncSaves, EndWithAnErrorWhenACallbackThrows) {
  for (const std::string place : {"guard", "committed", "phase", "progress"}) {
    SaveOptions throwing = options();
    SaveInternals internals;
    const auto fail = [&] { throw std::bad_alloc(); };
    if (place == "guard") {
      internals.guard = [&]() -> Result<std::shared_ptr<void>> {
        fail();
        return std::shared_ptr<void>();
      };
    }
    if (place == "committed") {
      throwing.committed = [&](const SaveReport&) -> Result<void> {
        fail();
        return {};
      };
    }
    if (place == "phase") internals.phase = [&](std::string_view) { fail(); };
    if (place == "progress") throwing.progress = [&](std::uint64_t, std::uint64_t) { fail(); };
    const auto saving = save_async({{"", array_tree(DType::kInt8, {5})}}, dir_ / place, throwing,
                                   make_runtime(), &internals);
    ASSERT_TRUE(saving) << place;
    EXPECT_EQ(testing::reason(saving->wait()), "base/out-of-memory") << place;
    EXPECT_EQ(saving->phase(), "failed") << place;
  }
}

TEST_P(AsyncSaves, EndWithAnErrorWhenTheirDirectoryGoesAway) {
  const Tree tree = array_tree(DType::kFloat32, {4096, 1024});
  for (std::size_t n = 0; n < 40; ++n) {
    const std::string path = dir_ / "c";
    std::atomic<std::size_t> operations = 0;
    const auto hostile = testing::interpose(storage::posix_file_system(), [&](std::size_t) {
      if (operations++ != n) return;
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    });
    // Less memory than data, so that the caller still copies while the disk fails.
    const auto runtime =
        make_runtime({.threads = 2, .staging_bytes = 8 * kMiB, .file_system = hostile.get()});
    const auto saving = save_async({{"", tree}}, path, options(), runtime);
    if (saving) {
      const auto saved = saving->wait();
      if (saved && operations > n) {
        std::filesystem::remove_all(path);
        continue;  // before anything was written, or after the end
      }
    }
    wait_for_background();
    EXPECT_EQ(runtime->staging().in_use(), 0U) << n;
    std::filesystem::remove_all(path);
  }
}

TEST_P(AsyncSaves, WaitForTheOneTheyComeAfter) {
  Gate gate;
  std::vector<std::string> order;
  SaveOptions first = options();
  first.committed = [&](const SaveReport&) -> Result<void> {
    order.push_back("first");
    return {};
  };
  const auto one = must(save_async({{"", array_tree(DType::kInt8, {5})}}, dir_ / "a", first,
                                   make_runtime({.file_system = gate.file_system()})));
  SaveOptions second = options();
  const SaveInternals internals{.after = std::make_shared<const SaveHandle>(one)};
  second.committed = [&](const SaveReport&) -> Result<void> {
    order.push_back("second");
    return {};
  };
  const auto two = must(save_async({{"", array_tree(DType::kInt8, {5})}}, dir_ / "b", second,
                                   make_runtime(), &internals));
  EXPECT_FALSE(two.done());
  gate.open();
  EXPECT_TRUE(two.wait());
  EXPECT_EQ(order, (std::vector<std::string>{"first", "second"}));
}

TEST_P(AsyncSaves, OfSeveralRanksAreOneSave) {
  constexpr int kRanks = 4;
  testing::Random random(9);
  const Array whole = testing::random_array(random, DType::kFloat32, {64, 32});
  testing::run_ranks(kRanks, [&](coord::Coordinator& coordinator) {
    const auto runtime = make_runtime({.threads = 2, .coordinator = &coordinator});
    const Mesh mesh = must(Mesh::over_ranks({{"x", kRanks}}, kRanks));
    const Sharding rows = must(NamedSharding::make(mesh, PartitionSpec({{"x"}})));
    const auto rank = static_cast<std::size_t>(coordinator.rank());
    Array mine = must(Array::allocate(DType::kFloat32, {16, 32}));
    must(copy_array(whole.slice(rows.box(rank, whole.shape())), mine));
    const Tree tree = Tree::dict(
        {{"w", must(ShardedArray::make(DType::kFloat32, whole.shape(), rows, {{rank, mine}}))}});
    for (int round = 0; round < 3; ++round) {
      const auto saving = save_async({{"", tree}}, dir_ / "c", options(), runtime);
      ASSERT_TRUE(saving) << saving.error().to_string();
      std::ranges::fill(mine.mutable_bytes(), std::byte{1});
      EXPECT_TRUE(saving->wait());
      must(copy_array(whole.slice(rows.box(rank, whole.shape())), mine));
    }
  });
  Runtime runtime;
  EXPECT_EQ(difference(Tree::dict({{"w", whole}}), must(load(dir_ / "c", {}, runtime)).tree), "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, AsyncSaves,
                         ::testing::Values(std::string(kZarr2Layout),
                                           std::string(kSafetensorsLayout)));

}  // namespace
}  // namespace cairn
