// SPDX-License-Identifier: Apache-2.0
// Looking at checkpoints as a whole: verify, diff, stats and convert.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/array/cast.h"
#include "cairn/inspect/convert.h"
#include "cairn/inspect/diff.h"
#include "cairn/inspect/stats.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::difference;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

Array floats(const std::vector<float>& values) {
  Array array = *Array::allocate(DType::kFloat32, {static_cast<Index>(values.size())});
  std::memcpy(array.mutable_data(), values.data(), values.size() * sizeof(float));
  return array;
}

class Inspect : public ::testing::Test {
 protected:
  Checkpoint opened(const std::string& name) {
    auto checkpoint = open_checkpoint(dir_ / name, runtime_);
    EXPECT_TRUE(checkpoint) << checkpoint.error().to_string();
    return *std::move(checkpoint);
  }
  void save(const Tree& tree, const std::string& name, const SaveOptions& options = {}) {
    const auto saved = save_tree(tree, dir_ / name, options, runtime_, "model");
    ASSERT_TRUE(saved) << saved.error().to_string();
  }
  static void flip(const std::string& path, std::size_t at) {
    std::string bytes = read_file(path);
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write_file(path, bytes);
  }

  Runtime runtime_;
  TempDir dir_;
};

Tree weights(std::uint64_t seed) {
  testing::Random random(seed);
  return Tree::dict({{"w", testing::random_array(random, DType::kInt32, {600, 700})},
                     {"b", testing::random_array(random, DType::kUint8, {50})},
                     {"lr", Value(0.5)}});
}

TEST_F(Inspect, VerifyNamesEveryDamagedChunk) {
  SaveOptions options;
  options.chunk_bytes = 600 * 1000;
  save(weights(1), "c", options);
  const auto good = verify(opened("c"), {}, runtime_);
  ASSERT_TRUE(good);
  EXPECT_TRUE(good->damages.empty());
  EXPECT_EQ(good->bytes, 600u * 700 * 4 + 50);
  flip(dir_ / "c/model/w/1.0", 1234);
  std::filesystem::remove(dir_ / "c/model/w/2.0");
  write_file(dir_ / "c/model/b/0", "short");
  write_file(dir_ / "c/model/w/.zarray", "{}");
  const auto report = verify(opened("c"), {}, runtime_);
  ASSERT_TRUE(report);
  std::vector<std::string> found;
  for (const Damage& damage : report->damages)
    found.push_back(damage.key + " " + damage.chunk + " " + damage.reason);
  EXPECT_THAT(
      found, ::testing::UnorderedElementsAre("b 0 load/chunk-length", "w 0.0 verify/array-metadata",
                                             "w 1.0 load/checksum", "w 2.0 load/chunk-missing"));
}

TEST_F(Inspect, VerifySeesTheHeaderAndTheTensorsOfAPart) {
  SaveOptions options{.layout = std::string(kSafetensorsLayout)};
  save(weights(1), "c", options);
  const std::string file = dir_ / "c/model.safetensors";
  flip(file, 4096 + 100000);
  const auto one = verify(opened("c"), {}, runtime_);
  ASSERT_EQ(one->damages.size(), 1u);
  EXPECT_EQ(one->damages[0].key, "w");
  flip(file, 4095);
  const auto two = verify(opened("c"), {}, runtime_);
  ASSERT_EQ(two->damages.size(), 2u);
  EXPECT_EQ(two->damages[0].reason, "verify/part-header");
}

TEST_F(Inspect, VerifyComparesASumOfZeroLikeAnyOther) {
  save(weights(1), "c", {.layout = std::string(kSafetensorsLayout)});
  Checkpoint checkpoint = opened("c");
  checkpoint.prefixes[0].manifest.parts[0].header_crc = 0;
  const auto report = verify(checkpoint, {}, runtime_);
  ASSERT_EQ(report->damages.size(), 1u);
  EXPECT_EQ(report->damages[0].reason, "verify/part-header");
}

TEST_F(Inspect, EveryFlippedByteOfEveryFileIsFound) {
  for (const std::string layout : {"zarr2", "safetensors"}) {
    TempDir dir;
    const Tree tree = Tree::dict({{"w", floats({1, 2, 3})}, {"b", floats({4})}});
    ASSERT_TRUE(save_tree(tree, dir / "c", {.layout = layout}, runtime_, "m"));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir / "c")) {
      const std::string path = entry.path().string();
      if (!entry.is_regular_file() || path.ends_with(".cairn-lock") ||
          path.ends_with("_index.json") || path.ends_with("_metadata.json")) {
        continue;
      }
      const std::string before = read_file(path);
      for (std::size_t at = 0; at < before.size(); at += before.size() > 2000 ? 37 : 3) {
        flip(path, at);
        const auto checkpoint = open_checkpoint(dir / "c", runtime_);
        const auto report = checkpoint ? verify(*checkpoint, {}, runtime_) : checkpoint.error();
        const bool noticed = !report || !report->damages.empty();
        // The record says who wrote it and when: such members may be any text.
        EXPECT_TRUE(noticed || path.ends_with("cairn.json")) << path << " at " << at;
        write_file(path, before);
      }
    }
  }
}

TEST_F(Inspect, DiffOfTheSameTreeInTwoLayoutsIsEmpty) {
  save(weights(1), "a", {.layout = std::string(kZarr2Layout)});
  save(weights(1), "b", {.layout = std::string(kSafetensorsLayout)});
  const auto report = diff(opened("a"), opened("b"), {}, runtime_);
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_TRUE(report->same());
  EXPECT_EQ(report->equal, 3u);
}

TEST_F(Inspect, DiffNamesEachKindOfDifference) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  save(Tree::dict({{"both", floats({1, 2, nan})},
                   {"half", floats({1.5F})},
                   {"only", floats({1})},
                   {"shape", floats({1})},
                   {"v", Value(Integer(1))},
                   {"what", floats({1})},
                   {"zero", floats({0.0F})}}),
       "a");
  save(Tree::dict({{"both", floats({1, 4, nan})},
                   {"half", *cast_array(floats({1.5F}), DType::kBfloat16)},
                   {"shape", floats({1, 1})},
                   {"v", Value(Integer(2))},
                   {"what", Value(true)},
                   {"zero", floats({-0.0F})},
                   {"new", Value(std::string("x"))}}),
       "b");
  const auto report = diff(opened("a"), opened("b"), {}, runtime_);
  ASSERT_TRUE(report) << report.error().to_string();
  std::map<std::string, LeafDifference> found;
  for (const LeafDifference& d : report->differences) found[d.key] = d;
  ASSERT_EQ(found.size(), 8u);
  EXPECT_EQ(found["both"].kind, DifferenceKind::kElements);
  EXPECT_EQ(found["both"].different, 1u);
  EXPECT_EQ(found["both"].max_absolute, 2.0);
  EXPECT_EQ(found["both"].max_relative, 0.5);
  EXPECT_EQ(found["half"].kind, DifferenceKind::kDType);
  EXPECT_EQ(found["half"].different, 0u);
  EXPECT_EQ(found["only"].kind, DifferenceKind::kOnlyInFirst);
  EXPECT_EQ(found["new"].kind, DifferenceKind::kOnlyInSecond);
  EXPECT_EQ(found["shape"].kind, DifferenceKind::kShape);
  EXPECT_EQ(found["v"].kind, DifferenceKind::kValue);
  EXPECT_EQ(found["what"].kind, DifferenceKind::kKind);
  EXPECT_EQ(found["zero"].kind, DifferenceKind::kElements);
}

TEST_F(Inspect, DiffSeesOtherContainers) {
  save(Tree::dict({{"x", Tree::list({floats({1})})}}), "a");
  save(Tree::dict({{"x", Tree::tuple({floats({1})})}}), "b");
  const auto report = diff(opened("a"), opened("b"), {}, runtime_);
  ASSERT_EQ(report->differences.size(), 1u);
  EXPECT_EQ(report->differences[0].kind, DifferenceKind::kStructure);
}

TEST_F(Inspect, StatsCountWhatIsThere) {
  const float inf = std::numeric_limits<float>::infinity();
  save(Tree::dict({{"f", floats({1, -3, 0, -0.0F, inf, -inf, std::nanf("")})},
                   {"none", floats({inf})},
                   {"empty", *Array::zeros(DType::kInt8, {0, 4})}}),
       "c");
  const auto results = stats(opened("c"), {}, runtime_);
  ASSERT_TRUE(results) << results.error().to_string();
  ASSERT_EQ(results->size(), 3u);
  const ArrayStats& f = (*results)[1];
  EXPECT_EQ(f.key, "f");
  EXPECT_EQ(f.min, -3.0);
  EXPECT_EQ(f.max, 1.0);
  EXPECT_EQ(f.mean, -0.5);
  EXPECT_DOUBLE_EQ(*f.std, std::sqrt((1 + 9) / 4.0 - 0.25));
  EXPECT_EQ(f.zeros, 2u);
  EXPECT_EQ(f.inf, 2u);
  EXPECT_EQ(f.nan, 1u);
  EXPECT_FALSE((*results)[0].min);
  EXPECT_FALSE((*results)[2].mean);
}

TEST_F(Inspect, StatsOfManyPiecesEqualThoseOfTheWhole) {
  std::vector<float> values(5'000'000);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(1000 + (i % 97));
    sum += values[i];
  }
  SaveOptions options;
  options.chunk_bytes = 3 * kMiB;
  save(Tree::dict({{"w", floats(values)}}), "c", options);
  const auto results = stats(opened("c"), {}, runtime_);
  ASSERT_TRUE(results);
  EXPECT_NEAR(*(*results)[0].mean, sum / 5e6, 1e-9);
  EXPECT_NEAR(*(*results)[0].std, 28.0, 0.01);
}

TEST_F(Inspect, ConvertKeepsTheTreeBothWays) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    TempDir dir;
    const Tree tree =
        testing::random_tree(seed, {.dtypes = {DType::kFloat32, DType::kInt64, DType::kBool}});
    SaveOptions first;
    first.chunk_bytes = 64;
    first.step = 3;
    first.enable_compression = seed % 2 == 0;
    ASSERT_TRUE(save_tree(tree, dir / "a", first, runtime_, "model"));
    const auto a = open_checkpoint(dir / "a", runtime_);
    const std::string to = seed % 3 == 0 ? dir / "b.safetensors" : dir / "b";
    SaveOptions second{.layout = std::string(kSafetensorsLayout)};
    second.shard_size = 300;
    std::string committed;
    second.committed = [&](const SaveReport& report) -> Result<void> {
      committed += report.path;
      return {};
    };
    const auto there = convert(*a, to, {.save = second}, runtime_);
    ASSERT_TRUE(there) << there.error().to_string();
    EXPECT_EQ(committed, there->path);
    const auto b = open_checkpoint(to, runtime_);
    ASSERT_TRUE(b) << b.error().to_string();
    EXPECT_EQ(b->prefixes[0].manifest.step, 3);
    ASSERT_TRUE(convert(*b, dir / "c", {}, runtime_));
    const auto loaded = load(dir / "c", {}, runtime_);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    ASSERT_EQ(difference(tree, loaded->tree), "") << seed;
  }
}

TEST_F(Inspect, ConvertStreamsUnderASmallBudget) {
  testing::Random random(1);
  save(Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {5000, 2100})}}), "a");
  Runtime small({.threads = 2, .memory_bytes = 8 * kMiB});
  SaveOptions bf16{.layout = std::string(kSafetensorsLayout)};
  bf16.float_dtype = DType::kBfloat16;
  const auto done = convert(opened("a"), dir_ / "b", {.save = bf16}, small);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_LE(small.budget().peak(), 32 * kMiB);
  const auto expected = load(dir_ / "a", {.dtype = DType::kBfloat16}, runtime_);
  const auto found = load(dir_ / "b", {}, runtime_);
  EXPECT_EQ(difference(expected->tree, found->tree), "");
}

}  // namespace
}  // namespace cairn
