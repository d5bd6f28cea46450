// SPDX-License-Identifier: Apache-2.0
// Whoever loads the latest checkpoint of a run while others save, replace and remove gets one,
// whole.
#include <algorithm>
#include <ostream>

#include <gtest/gtest.h>

#include "cairn/manager/checkpointer.h"
#include "cairn/run/discovery.h"
#include "cairn/run/mark.h"
#include "cairn/run/removal.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

using testing::LossyFileSystem;
using testing::must;

constexpr const char* kRun = "/run";

std::string path_of(int step) { return std::string(kRun) + "/run-" + std::to_string(step); }

Tree tree_of(int seed) {
  testing::Random random(static_cast<std::uint64_t>(seed));
  return Tree::dict(
      {{"w" + std::to_string(seed), testing::random_array(random, DType::kFloat32, {5, 3})},
       {"b", testing::random_array(random, DType::kInt8, {7 + seed})}});
}

void save(storage::FileSystem& disk, int step, int seed) {
  Runtime runtime({.threads = 1, .file_system = &disk});
  SaveOptions options;
  options.step = step;
  options.overwrite = true;
  options.chunk_bytes = 32;
  Mark mark = make_mark(step, false, system_clock().wall());
  mark.extra = Json(Json::Object{{"seed", seed}});
  const SaveInternals marked{.mark = dump_mark(mark)};
  must(save_checkpoint({{"", tree_of(seed)}}, path_of(step), options, runtime, &marked));
}

void remove(storage::FileSystem& disk, int step) {
  Runtime runtime({.threads = 1, .file_system = &disk});
  must(remove_checkpoint(kRun, path_of(step), {}, runtime));
  must(empty_trash(kRun, runtime));
}

/// What others do in the middle of a load, and which trees are right then.
struct Meanwhile {
  const char* name;
  void (*act)(storage::FileSystem&);
  std::vector<int> right;
};

void PrintTo(const Meanwhile& meanwhile, std::ostream* out) { *out << meanwhile.name; }

class Latest : public ::testing::TestWithParam<Meanwhile> {};

TEST_P(Latest, IsLoadedWholeWhateverHappensMeanwhile) {
  LossyFileSystem base;
  must(base.make_directory(nullptr, kRun));
  for (const int step : {1, 2}) save(base, step, step);
  bool reached = true;
  for (std::size_t n = 0; reached; ++n) {
    const auto disk = base.after_kill();
    reached = false;
    const auto reading = testing::interpose(*disk, [&](std::size_t operation) {
      if (operation != n) return;
      reached = true;
      GetParam().act(*disk);
    });
    const auto runtime =
        std::make_shared<Runtime>(RuntimeOptions{.threads = 1, .file_system = reading.get()});
    const auto run = must(Checkpointer::make({.base_path = kRun}, runtime));
    const auto loaded = run->load_checkpoint();
    ASSERT_TRUE(loaded) << "at operation " << n << ": " << loaded.error().to_string();
    const bool right = std::ranges::any_of(GetParam().right, [&](int seed) {
      return testing::difference(loaded->tree, tree_of(seed)).empty();
    });
    EXPECT_TRUE(right) << "at operation " << n;
    const int seed = static_cast<int>(loaded->extras.find("seed")->integer().value_or(0));
    EXPECT_EQ(testing::difference(loaded->tree, tree_of(seed)), "")
        << "at operation " << n << ": arrays and mark are of two saves";
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meanwhile, Latest,
    ::testing::Values(
        Meanwhile{"Saved", [](storage::FileSystem& disk) { save(disk, 3, 3); }, {2, 3}},
        Meanwhile{"Replaced", [](storage::FileSystem& disk) { save(disk, 2, 3); }, {2, 3}},
        Meanwhile{"SavedAndRemoved",
                  [](storage::FileSystem& disk) {
                    save(disk, 3, 3);
                    for (const int step : {1, 2}) remove(disk, step);
                  },
                  {2, 3}},
        Meanwhile{"Removed", [](storage::FileSystem& disk) { remove(disk, 2); }, {1, 2}}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cairn
