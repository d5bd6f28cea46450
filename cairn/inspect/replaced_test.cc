// SPDX-License-Identifier: Apache-2.0
// Readers of a checkpoint that is saved again while they read it.
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/inspect/convert.h"
#include "cairn/inspect/diff.h"
#include "cairn/inspect/stats.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;

/// The n-th save has n everywhere.
Tree tree_of(float n) {
  Array array = must(Array::allocate(DType::kFloat32, {3}));
  const std::vector<float> values(3, n);
  std::memcpy(array.mutable_data(), values.data(), array.nbytes());
  return Tree::dict({{"a", array}, {"b", array}});
}

/// What a reader saw: "1", "2" or, if it mixed them, "1 2".
using Seen = std::string;

Seen seen_in(const Tree& tree) {
  std::set<float> values;
  for (const char* key : {"a", "b"}) {
    const Array& array = std::get<ShardedArray>(tree.find(key)->leaf()).array();
    const auto* data = reinterpret_cast<const float*>(array.data());
    values.insert(data, data + array.elements());
  }
  return fmt::format("{}", fmt::join(values, " "));
}

using Reader = std::function<Result<Seen>(const std::string& path, Runtime& runtime)>;

Result<Seen> load_it(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Loaded loaded, load(path, {}, runtime));
  return seen_in(loaded.tree);
}

Result<Seen> load_unchecked(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Loaded loaded, load(path, {.check = false}, runtime));
  return seen_in(loaded.tree);
}

Result<Seen> verify_it(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_checkpoint(path, runtime));
  CAIRN_TRY_ASSIGN(const VerifyReport report, verify(checkpoint, {}, runtime));
  return report.damages.empty() ? Seen("1") : report.damages[0].message;
}

Result<Seen> stats_of_it(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_checkpoint(path, runtime));
  CAIRN_TRY_ASSIGN(const auto arrays, stats(checkpoint, {}, runtime));
  std::set<double> values;
  for (const ArrayStats& array : arrays) values.insert({*array.min, *array.max});
  return fmt::format("{}", fmt::join(values, " "));
}

Result<Seen> compare_it(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Checkpoint first, open_checkpoint(path, runtime));
  CAIRN_TRY_ASSIGN(const Checkpoint second, open_checkpoint("/run/two", runtime));
  CAIRN_TRY_ASSIGN(const DiffReport report, diff(second, first, {}, runtime));
  return report.equal == 2 ? "2" : report.equal == 0 ? "1" : "1 2";
}

Result<Seen> convert_it(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_checkpoint(path, runtime));
  CAIRN_TRY(convert(checkpoint, "/run/converted", {}, runtime));
  return load_it("/run/converted", runtime);
}

struct Case {
  const char* name;
  Reader read;
};

class Replaced : public ::testing::TestWithParam<std::tuple<Case, const char*>> {};

// A whole save between any two operations of the reader.
TEST_P(Replaced, WhileItIsReadIsReadInOneState) {
  const auto& [reader, path] = GetParam();
  testing::LossyFileSystem base;
  const auto save = [](storage::FileSystem& fs, const std::string& to, float n) {
    testing::ManualClock clock;
    Runtime runtime({.threads = 1, .file_system = &fs, .clock = &clock});
    const bool parts = to.find("parts") != std::string::npos;
    SaveOptions options{.layout = std::string(parts ? kSafetensorsLayout : kZarr2Layout)};
    if (parts) options.shard_size = 12;  // a file for each array
    must(save_tree(tree_of(n), to, options, runtime, "model"));
  };
  save(base, path, 1);
  save(base, "/run/two", 2);
  bool reached = true;
  for (std::size_t n = 0; reached; ++n) {
    const auto disk = base.after_kill();
    reached = false;
    const auto reading = testing::interpose(*disk, [&](std::size_t operation) {
      if (operation != n) return;
      reached = true;
      save(*disk, path, 2);
    });
    Runtime runtime({.threads = 1, .file_system = reading.get()});
    const auto seen = reader.read(path, runtime);
    ASSERT_TRUE(seen) << n << ": " << seen.error().to_string();
    EXPECT_THAT(*seen, ::testing::AnyOf("1", "2")) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Readers, Replaced,
    ::testing::Combine(::testing::Values(Case{"load", load_it},
                                         Case{"load_unchecked", load_unchecked},
                                         Case{"verify", verify_it}, Case{"stats", stats_of_it},
                                         Case{"diff", compare_it}, Case{"convert", convert_it}),
                       ::testing::Values("/run/directory", "/run/parts", "/run/file.safetensors")),
    [](const auto& chosen) {
      const std::string path = std::get<1>(chosen.param);
      return fmt::format("{}_{}", std::get<0>(chosen.param).name,
                         path.substr(5, path.find('.') - 5));
    });

class Foreign : public ::testing::Test {
 protected:
  void write(const std::string& path, float n) {
    // Without our manifest, as others write it.
    std::string header = R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})";
    header.resize(64, ' ');
    std::string bytes(8, '\0');
    bytes[0] = 64;
    const std::vector<float> values(3, n);
    bytes += header;
    bytes.append(reinterpret_cast<const char*>(values.data()), 12);
    testing::write_file(path, bytes);
  }
  Result<std::vector<float>> numbers(const Checkpoint& checkpoint) {
    CAIRN_TRY_ASSIGN(const Loaded loaded, load(checkpoint, {}, runtime_));
    const Array& array = std::get<ShardedArray>(loaded.tree.find("a")->leaf()).array();
    const auto* data = reinterpret_cast<const float*>(array.data());
    return std::vector<float>(data, data + array.elements());
  }

  testing::TempDir dir_;
  Runtime runtime_;
};

TEST_F(Foreign, FileIsReadAsItWasOpenedAfterARename) {
  write(dir_ / "m.safetensors", 1);
  const Checkpoint checkpoint = must(open_checkpoint(dir_ / "m.safetensors", runtime_));
  write(dir_ / "new", 2);
  ASSERT_EQ(std::rename((dir_ / "new").c_str(), (dir_ / "m.safetensors").c_str()), 0);
  EXPECT_THAT(must(numbers(checkpoint)), ::testing::Each(1));
}

TEST_F(Foreign, FileThatIsWrittenAgainInPlaceIsNamed) {
  write(dir_ / "m.safetensors", 1);
  const Checkpoint checkpoint = must(open_checkpoint(dir_ / "m.safetensors", runtime_));
  // Its size changes too, so that it shows however coarse the clock of the file system is.
  write(dir_ / "m.safetensors", 2);
  testing::write_file(dir_ / "m.safetensors", testing::read_file(dir_ / "m.safetensors") + " ");
  const auto read = numbers(checkpoint);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().reason(), "checkpoint/replaced");
}

TEST_F(Foreign, ArraysThatAreRemovedAreNotReadAsZeros) {
  const std::string path = dir_ / "z";
  std::filesystem::create_directories(path + "/a");
  testing::write_file(
      path + "/a/.zarray",
      R"({"zarr_format":2,"shape":[3],"chunks":[3],"dtype":"<f4","compressor":null,)"
      R"("fill_value":0,"order":"C","filters":null})");
  const Checkpoint checkpoint = must(open_checkpoint(path, runtime_));
  EXPECT_THAT(must(numbers(checkpoint)), ::testing::Each(0)) << "its chunk was never written";
  std::filesystem::remove_all(path);
  const auto read = numbers(checkpoint);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().reason(), "checkpoint/replaced");
}

// Each of the two was saved once.
TEST(Opened, PathThatLeadsToAnotherCheckpointIsReadThere) {
  const testing::TempDir dir;
  Runtime runtime;
  must(save_tree(tree_of(1), dir / "v1", {}, runtime));
  must(save_tree(tree_of(2), dir / "v2", {}, runtime));
  std::filesystem::create_directory_symlink("v1", dir / "latest");
  const Checkpoint checkpoint = must(open_checkpoint(dir / "latest", runtime));
  std::filesystem::remove(dir / "latest");
  std::filesystem::create_directory_symlink("v2", dir / "latest");
  std::filesystem::remove_all(dir / "v1");
  EXPECT_EQ(reason(load(checkpoint, {}, runtime)), "checkpoint/replaced");
}

TEST(Opened, CheckpointOfOursThatWasSavedAgainIsNotCalledDamaged) {
  const testing::TempDir dir;
  Runtime runtime;
  must(save_tree(tree_of(1), dir / "c", {}, runtime, "model"));
  const Checkpoint checkpoint = must(open_checkpoint(dir / "c", runtime));
  must(save_tree(tree_of(2), dir / "c", {}, runtime, "model"));
  EXPECT_EQ(reason(load(checkpoint, {}, runtime)), "checkpoint/replaced");
  EXPECT_EQ(must(verify(checkpoint, {}, runtime)).damages.size(), 0);
}

}  // namespace
}  // namespace cairn
