// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/async_manager.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "cairn/async/background.h"
#include "cairn/base/sha256.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/manifest/manifest_json.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/gate.h"
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
using testing::reason;

Array array_of(std::uint64_t seed, DType dtype = DType::kFloat32, const Shape& shape = {30, 7}) {
  testing::Random random(seed);
  return testing::random_array(random, dtype, shape);
}

Tree tree_of(std::uint64_t seed, DType dtype = DType::kFloat32) {
  return Tree::dict({{"w", array_of(seed, dtype)}, {"v", Tree::dict({{"b", array_of(seed + 1)}})}});
}

std::uint64_t bytes_in(const std::string& path) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

CommitGuard refusing() {
  return []() -> Result<std::shared_ptr<void>> {
    return Error(Code::kFailedPrecondition, "run/taken-over", "not you");
  };
}

/// All is as it should be but the first array's SHA-256.
void forge_sha256(const std::string& path, const Checkpoint& opened) {
  Manifest manifest = opened.prefixes.front().manifest;
  manifest.arrays.front().sha256 = std::string(64, '0');
  const std::string text = must(dump_manifest(manifest));
  Record record = *opened.record;
  record.prefixes.front().manifest_bytes = text.size();
  record.prefixes.front().manifest_sha256 = sha256_hex(as_bytes(text));
  std::ofstream(path + "/" + record.prefixes.front().manifest) << text;
  std::ofstream(path + "/cairn.json") << must(dump_record(record));
}

class Manager : public ::testing::Test {
 protected:
  ~Manager() override { wait_for_background(); }  // which still uses the log
  AsyncCheckpointManager make(AsyncManagerOptions options = {}, RuntimeOptions runtime = {}) {
    runtime.log = [this](const LogEntry& entry) {
      MutexLock lock(mutex_);
      log_.push_back(entry.event);
    };
    return {options, std::make_shared<Runtime>(std::move(runtime))};
  }
  std::size_t logged(const std::string& event) {
    MutexLock lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count(log_, event));
  }
  bool has(const std::string& file) { return std::filesystem::exists(path_ + "/" + file); }

  testing::TempDir dir_;
  const std::string path_ = dir_ / "c";
  Mutex mutex_;
  std::vector<std::string> log_ CAIRN_GUARDED_BY(mutex_);
};

TEST_F(Manager, SavesTheLayoutThatIsAskedFor) {
  must(make().save(tree_of(1), path_));
  EXPECT_EQ(must(open_checkpoint(path_, *make().runtime())).kind, "cairn zarr2");
  EXPECT_EQ(difference(tree_of(1), must(make().load(path_)).tree), "");
  must(make({.use_tensorstore = false}).save(tree_of(1), dir_ / "s"));
  EXPECT_EQ(must(open_checkpoint(dir_ / "s", *make().runtime())).kind, "cairn safetensors");
}

TEST_F(Manager, ReplacesATreeWithOtherLeavesUnlessItIsTold) {
  auto manager = make();
  must(must(manager.save(Tree::dict({{"old", Value(true)}}), path_)).wait());
  must(must(manager.save(tree_of(1), path_)).wait());
  EXPECT_EQ(difference(tree_of(1), must(manager.load(path_)).tree), "");
  manager.set_options({.overwrite = false});
  const auto refused = must(manager.save(Tree::dict({{"old", Value(true)}}), path_));
  EXPECT_EQ(testing::reason(refused.wait()), "save/other-tree");
}

TEST_F(Manager, WritesNothingWhenItIsSwitchedOff) {
  auto manager = make({.enable = false});
  EXPECT_TRUE(must(manager.save_tree(tree_of(1), path_)).wait());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(logged("manager/disabled"), 1U);
  must(make({.enable = true}).save_tree(tree_of(1), path_));
  must(make().load(path_));
}

TEST_F(Manager, CastsFloatsWhereItIsAskedTo) {
  const auto type_of = [&](const std::string& path) {
    const auto loaded = must(make().load(path, {.keys = {KeyPath({"w"})}}));
    return std::get<ShardedArray>(must(flatten(loaded.tree)).front().leaf).dtype();
  };
  auto casting = make({.float_dtype = DType::kBfloat16});
  must(casting.save_tree(tree_of(1), path_));
  EXPECT_EQ(type_of(path_), DType::kBfloat16);
  must(casting.save_tree(tree_of(1), path_, {.save = {.float_dtype = DType::kFloat16}}));
  EXPECT_EQ(type_of(path_), DType::kFloat16);
  must(make().save_tree(tree_of(1), path_));
  EXPECT_EQ(type_of(path_), DType::kFloat32);
}

TEST_F(Manager, CastsWhatATreeWithAPrefixAsksFor) {
  must(make().save_pytree(tree_of(1), path_,
                          {.prefix = "model", .save = {.float_dtype = DType::kBfloat16}}));
  const auto loaded = must(make().load(path_));
  for (const NamedLeaf& leaf : must(flatten(loaded.tree)))
    EXPECT_EQ(std::get<ShardedArray>(leaf.leaf).dtype(), DType::kBfloat16);
}

TEST_F(Manager, WritesDownTheMeshThatItIsGiven) {
  const Mesh mesh = must(Mesh::over_ranks({{"dp", 2}, {"tp", 4}}, 1));
  const auto axes_of = [&](const std::string& path) {
    return must(open_checkpoint(path, *make().runtime())).prefixes.front().manifest.mesh;
  };
  must(make().save_tree(tree_of(1), dir_ / "a", {.save = {.mesh = mesh.axes()}}));
  must(make().save_pytree(tree_of(1), dir_ / "b",
                          {.prefix = "model", .save = {.mesh = mesh.axes()}}));
  must(make().save_tree(tree_of(1), dir_ / "c"));
  EXPECT_EQ(axes_of(dir_ / "a"), mesh.axes());
  EXPECT_EQ(axes_of(dir_ / "b"), mesh.axes());
  EXPECT_TRUE(axes_of(dir_ / "c").empty());
}

TEST_F(Manager, CompressesAndSplitsWhereItIsAskedTo) {
  const Tree zeros = Tree::dict({{"w", must(Array::zeros(DType::kInt8, {100'000}))}});
  must(make().save(zeros, dir_ / "raw"));
  must(make({.enable_compression = true}).save(zeros, dir_ / "small"));
  must(make().wait_until_finished());
  must(make().load(dir_ / "small"));
  must(make().load(dir_ / "raw"));
  EXPECT_LT(bytes_in(dir_ / "small") + 90'000, bytes_in(dir_ / "raw"));
  must(make({.use_tensorstore = false, .shard_size = 1000}).save(tree_of(1), path_));
  must(make().load(path_));
  EXPECT_TRUE(has("model-00001-of-00002.safetensors"));
  must(make({.enable_compression = true, .use_tensorstore = false}).save(tree_of(1), dir_ / "s"));
}

TEST_F(Manager, ValidatesBothLayouts) {
  for (const bool zarr : {true, false}) {
    const std::string path = dir_ / (zarr ? "z" : "s");
    auto manager = make({.enable_validation = true, .use_tensorstore = zarr});
    must(manager.save(tree_of(1), path));
    must(manager.load(path));
    const auto opened = must(open_checkpoint(path, *manager.runtime()));
    for (const ManifestArray& array : opened.prefixes.front().manifest.arrays)
      EXPECT_EQ(array.sha256.size(), 64U);
    forge_sha256(path, opened);
    EXPECT_EQ(reason(manager.load(path)), "load/sha256");
    EXPECT_EQ(reason(make().load(path, {.validate = true})), "load/sha256");
    must(make().load(path));
  }
  EXPECT_EQ(must(AsyncCheckpointManager::compute_checksum(array_of(3))),
            sha256_hex(array_of(3).bytes()));
}

TEST_F(Manager, SaysWhatItDoesWhenItIsVerbose) {
  must(must(make().save(tree_of(1), path_)).wait());
  EXPECT_EQ(logged("save/phase"), 0U);
  must(must(make({.verbose = true}).save(tree_of(1), path_)).wait());
  EXPECT_GE(logged("save/phase"), 2U);
}

TEST_F(Manager, TellsWhoWantsToKnowHowFarASaveIs) {
  for (const bool verbose : {false, true}) {
    Mutex mutex;
    std::vector<std::string> phases;
    std::pair<std::uint64_t, std::uint64_t> last;
    SaveInternals internals;
    internals.phase = [&](std::string_view phase) {
      MutexLock lock(mutex);
      phases.emplace_back(phase);
    };
    SaveTreeOptions options;
    options.save.progress = [&](std::uint64_t done, std::uint64_t total) { last = {done, total}; };
    auto manager = make({.verbose = verbose});
    must(must(manager.save_checkpoint({{"", tree_of(1)}}, path_, options, &internals)).wait());
    EXPECT_EQ(phases, (std::vector<std::string>{"writing", "syncing", "committing"}));
    EXPECT_EQ(last, std::pair(std::uint64_t{1680}, std::uint64_t{1680}));
  }
}

TEST_F(Manager, BlocksWhenItIsAskedTo) {
  EXPECT_TRUE(must(make({.blocking = true}).save(tree_of(1), path_)).done());
  ASSERT_EQ(setenv("CAIRN_BLOCKING_SAVES", "1", 1), 0);
  EXPECT_TRUE(must(make().save(tree_of(1), path_)).done());
  ASSERT_EQ(unsetenv("CAIRN_BLOCKING_SAVES"), 0);
  Gate gate;
  EXPECT_FALSE(must(make({}, {.file_system = gate.file_system()}).save(tree_of(1), path_)).done());
}

TEST_F(Manager, KeepsWhatTheUserAdds) {
  auto manager = make();
  std::string told;
  SaveTreeOptions options{.prefix = "model", .callback = [&](const std::string& path) {
                            told += path + (has("cairn.json") ? " committed" : "");
                          }};
  options.save.committed = [&](const SaveReport& report) -> Result<void> {
    told = std::to_string(report.arrays) + " in ";
    return {};
  };
  options.save.metadata = Json(Json::Object{{"lr", 0.5}});
  options.save.extras = Json(Json::Object{{"epoch", 3}});
  options.save.step = 7;
  must(manager.save_pytree(tree_of(1), path_, options));
  const auto loaded = must(manager.load_pytree(path_, {.prefix = "model"}));
  EXPECT_EQ(loaded.metadata.find("lr")->number(), 0.5);
  EXPECT_EQ(loaded.extras.find("epoch")->integral(), 3);
  must(manager.wait_until_finished());
  EXPECT_EQ(told, "2 in " + path_ + " committed");
  EXPECT_EQ(must(open_checkpoint(path_, *manager.runtime())).record->step, 7);
}

TEST_F(Manager, SavesATreeUnderItsPrefix) {
  auto manager = make();
  must(manager.save_tree(tree_of(1), path_, {.prefix = "model"}));
  EXPECT_EQ(difference(tree_of(1), must(manager.load(path_, {.prefix = "model"})).tree), "");
}

TEST_F(Manager, RefusesAPytreeWithoutAPrefix) {
  auto manager = make();
  EXPECT_EQ(manager.save_pytree(tree_of(1), path_, {}).error().reason(), "save/no-prefix");
  EXPECT_EQ(manager.load_pytree(path_, {}).error().reason(), "load/no-prefix");
}

TEST_F(Manager, LeavesOutTheIndexWhenItIsAskedTo) {
  must(must(make().save_tree(tree_of(1), path_, {.save = {.write_index = false}})).wait());
  EXPECT_FALSE(has("tensorstore_index.json"));
  must(make().load(path_));
}

TEST_F(Manager, SavesWhatGatherFunctionsMake) {
  const LeafCallback only_w = [](const KeyPath& path, const ShardedArray&) -> Result<Leaf> {
    if (path.text() == "v.b")
      return Error(Code::kNotFound, "manager/no-function", "no function for this leaf");
    return Leaf(ShardedArray(array_of(9)));
  };
  auto manager = make();
  const auto refused = manager.save_tree(tree_of(1), path_, {.gather_fns = only_w});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where(), "leaf v.b");
  must(manager.save_tree(Tree::dict({{"w", array_of(1)}}), path_, {.gather_fns = only_w}));
  EXPECT_EQ(difference(Tree::dict({{"w", array_of(9)}}), must(manager.load(path_)).tree), "");
}

TEST_F(Manager, SavesSeveralPrefixesAsOne) {
  auto manager = make();
  must(manager.save_checkpoint({{"model", tree_of(1)}, {"optimizer", tree_of(5)}}, path_));
  EXPECT_EQ(difference(tree_of(5), must(manager.load(path_, {.prefix = "optimizer"})).tree), "");
  EXPECT_EQ(must(open_checkpoint(path_, *manager.runtime())).record->generation, 1U);
}

// Errors. -----------------------------------------------------------------------------------------

TEST_F(Manager, TellsAnErrorOnceToWhoeverComesFirst) {
  using Call = std::function<Result<void>(AsyncCheckpointManager&)>;
  const Call calls[] = {
      [](AsyncCheckpointManager& manager) { return manager.wait_until_finished(); },
      [this](AsyncCheckpointManager& manager) -> Result<void> {
        CAIRN_TRY(manager.save(tree_of(2), path_));
        return {};
      },
      [](AsyncCheckpointManager& manager) -> Result<void> {
        for (const SaveHandle& save : manager.saves_in_flight()) save.wait().ignore_error("known");
        return manager.check_for_errors();
      },
  };
  for (const Call& call : calls) {
    auto manager = make();
    const SaveInternals internals{.guard = refusing()};
    const auto handle = must(manager.save_checkpoint({{"", tree_of(1)}}, path_, {}, &internals));
    const auto told = call(manager);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().reason(), "run/taken-over");
    EXPECT_TRUE(call(manager)) << "once";
    EXPECT_FALSE(handle.wait()) << "the handle keeps it";
  }
}

// A second save meanwhile. ------------------------------------------------------------------------

TEST_F(Manager, WaitsForTheSaveBefore) {
  auto manager = make();
  for (std::uint64_t round = 0; round < 20; ++round) {
    must(manager.save(tree_of(round), dir_ / std::to_string(round)));
    EXPECT_LE(manager.saves_in_flight().size(), 1U);
  }
  must(manager.wait_until_finished());
  EXPECT_EQ(difference(tree_of(19), must(manager.load(dir_ / "19")).tree), "");
}

TEST_F(Manager, RefusesASecondSaveMeanwhileIfToldSo) {
  Gate gate;
  auto manager = make({.while_saving = WhileSaving::kRefuse}, {.file_system = gate.file_system()});
  must(manager.save(tree_of(1), path_));
  const auto refused = manager.save(tree_of(2), dir_ / "d");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "manager/busy");
  gate.open();
  must(manager.wait_until_finished());
  must(manager.save(tree_of(2), dir_ / "d"));
}

TEST_F(Manager, QueuesSavesWithinItsMemoryIfToldSo) {
  Gate gate;
  auto manager = make({.while_saving = WhileSaving::kQueue},
                      {.staging_bytes = 4 * kMiB, .file_system = gate.file_system()});
  std::vector<std::string> order;
  const auto note = [&](const std::string& path) {
    order.push_back(std::filesystem::path(path).filename());
  };
  for (const std::string name : {"a", "b", "c"})
    must(manager.save(tree_of(1), dir_ / name, {.callback = note}));
  EXPECT_EQ(manager.saves_in_flight().size(), 3U);
  gate.open();
  must(manager.wait_until_finished());
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "c"}));
  // More than fits: the caller waits for what is before it.
  const Tree large = Tree::dict({{"w", array_of(3, DType::kFloat32, {512, 1024})}});
  for (const std::string name : {"d", "e", "f", "g"}) must(manager.save(large, dir_ / name));
  must(manager.wait_until_finished());
  EXPECT_LE(manager.runtime()->staging().peak(), 4 * kMiB);
  EXPECT_EQ(difference(large, must(manager.load(dir_ / "g")).tree), "");
}

TEST_F(Manager, RefusesOnAllRanksOrNone) {
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    Gate gate;
    const bool slow = coordinator.rank() == 1;
    auto manager = make({.while_saving = WhileSaving::kRefuse},
                        {.threads = 1,
                         .file_system = slow ? gate.file_system() : nullptr,
                         .coordinator = &coordinator});
    must(manager.save(tree_of(1), path_));
    const auto second = manager.save(tree_of(2), dir_ / "d");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Code::kUnavailable) << second.error().to_string();
    gate.open();
    must(manager.wait_until_finished());
  });
}

// Loads. ------------------------------------------------------------------------------------------

TEST_F(Manager, LoadsWhatBeginsWithAFilter) {
  auto manager = make({.use_tensorstore = false, .shard_size = 1000});
  must(manager.save(tree_of(1), path_));
  const auto loaded = must(manager.load_tree_parallel(path_, "v"));
  EXPECT_EQ(loaded.report.loaded, std::vector<std::string>{"v.b"});
  EXPECT_EQ(must(manager.load_tree_parallel(path_)).report.loaded.size(), 2U);
  EXPECT_EQ(manager.load_tree_parallel(path_, "x").error().reason(), "load/key-missing");
}

TEST_F(Manager, ShowsKeysWithThePrefixInLoadPytreeAlone) {
  auto manager = make();
  must(manager.save_pytree(tree_of(1), path_, {.prefix = "model"}));
  std::vector<std::string> keys;
  LoadOptions options{.prefix = "model"};
  options.callback = [&](const KeyPath& path, const ShardedArray& array) -> Result<Leaf> {
    keys.push_back(path.text());
    return Leaf(array);
  };
  must(manager.load_pytree(path_, options));
  must(manager.load(path_, options));
  EXPECT_EQ(keys, (std::vector<std::string>{"model.v.b", "model.w", "v.b", "w"}));
  // Rules and shardings likewise.
  const Mesh mesh = must(Mesh::over_ranks({{"x", 2}, {"y", 1}}, 1));
  const auto rules = must(PartitionRules::make({{"^model/", PartitionSpec()}}));
  LoadOptions ruled{.prefix = "model", .mesh = mesh, .partition_rules = &rules};
  must(manager.load_pytree(path_, ruled));
  EXPECT_FALSE(manager.load(path_, ruled));
  const Sharding rows = must(NamedSharding::make(mesh, PartitionSpec({{"x"}})));
  const ShardingTree by_key{{KeyPath({"model", "w"}), rows}, {KeyPath({"model", "v", "b"}), rows}};
  LoadOptions named{.prefix = "model", .mesh = mesh, .shardings = &by_key};
  named.mismatch_allowed = false;
  must(manager.load_pytree(path_, named));
  const auto refused = manager.load(path_, named);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "load/unnamed-leaves");
  EXPECT_NE(refused.error().message().find("v.b, w"), std::string::npos);
}

TEST_F(Manager, ReadsOnTheCallingThreadIfToldSo) {
  auto manager = make();
  must(manager.save(tree_of(1), path_));
  must(manager.wait_until_finished());
  std::set<std::thread::id> threads;
  Mutex mutex;
  LoadOptions options{.use_async = false};
  options.progress = [&](std::uint64_t, std::uint64_t) {
    MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  EXPECT_EQ(difference(tree_of(1), must(manager.load(path_, options)).tree), "");
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
}

TEST(AsyncManagerCallbacks, CannotWaitForTheirOwnSave) {
  const testing::TempDir dir;
  AsyncCheckpointManager manager({}, std::make_shared<Runtime>(RuntimeOptions{.threads = 1}));
  std::string waited;
  std::string saved;
  const auto callback = [&](const std::string&) {
    waited = reason(manager.wait_until_finished());
    saved = reason(manager.save_tree(tree_of(2), dir / "d"));
  };
  must(manager.save_tree(tree_of(1), dir / "c", {.callback = callback}));
  must(manager.wait_until_finished());
  EXPECT_EQ(waited, "manager/in-callback");
  EXPECT_EQ(saved, "manager/in-callback");
}

}  // namespace
}  // namespace cairn
