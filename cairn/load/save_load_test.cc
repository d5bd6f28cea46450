// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "cairn/format/safetensors/header.h"
#include "cairn/format/safetensors/header_parser.h"
#include "cairn/format/zarr2/dtype.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::difference;
using testing::random_array;
using testing::random_tree;
using testing::RandomTreeOptions;
using testing::TempDir;

std::vector<DType> types_of(std::string_view layout) {
  std::vector<DType> types;
  for (const DType dtype : all_dtypes()) {
    const bool fits = layout == kZarr2Layout ? format::zarr2::dtype_string(dtype).has_value()
                                             : format::safetensors::dtype_string(dtype).has_value();
    // Packed types need whole bytes, which random shapes do not give.
    if (fits && (layout == kZarr2Layout || bit_width(dtype) >= 8 || dtype == DType::kBool))
      types.push_back(dtype);
  }
  return types;
}

Tree array_tree(DType dtype, const Shape& shape, std::uint64_t seed = 1) {
  testing::Random random(seed);
  return Tree::dict({{"w", random_array(random, dtype, shape)}});
}

class RoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, RandomTreesComeBackBitForBit) {
  Runtime runtime;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    TempDir dir;
    RandomTreeOptions options{.dtypes = types_of(GetParam())};
    const Tree tree = random_tree(seed, options);
    SaveOptions save{.layout = GetParam(),
                     .enable_compression = GetParam() == kZarr2Layout && seed % 2 == 1};
    save.chunk_bytes = std::uint64_t{64} << (seed % 5);
    save.shard_size = 1 + seed * 50;
    save.enable_validation = seed % 3 == 0;
    const std::string path =
        seed % 4 == 0 && GetParam() == kSafetensorsLayout ? dir / "one.safetensors" : dir / "c";
    const auto saved = save_tree(tree, path, save, runtime, "model");
    ASSERT_TRUE(saved) << seed << ": " << saved.error().to_string();
    const auto loaded = load(path, {.validate = true}, runtime);
    ASSERT_TRUE(loaded) << seed << ": " << loaded.error().to_string();
    ASSERT_EQ(difference(tree, loaded->tree), "") << "seed " << seed;
    EXPECT_TRUE(loaded->report.unchecked.empty());
  }
}

TEST_P(RoundTrip, LargeArraysGoThroughManyPiecesAndSmallBudgets) {
  Runtime runtime({.threads = 3, .memory_bytes = 4 * kMiB});
  TempDir dir;
  const Tree tree = Tree::dict({{"big", array_tree(DType::kFloat32, {1031, 4099})},
                                {"long", array_tree(DType::kBfloat16, {9 * 1024 * 1024 + 3})},
                                {"flat", array_tree(DType::kInt8, {3, 1, 1000003})}});
  SaveOptions save{.layout = GetParam()};
  save.chunk_bytes = 5 * kMiB;
  ASSERT_TRUE(save_tree(tree, dir / "c", save, runtime));
  const auto loaded = load(dir / "c", {}, runtime);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(difference(tree, loaded->tree), "");
  EXPECT_LE(runtime.budget().peak(), 12 * kMiB);
}

TEST_P(RoundTrip, SlicesEqualSlicesOfTheWhole) {
  Runtime runtime;
  testing::Random random(5);
  TempDir dir;
  const Array whole = random_array(random, DType::kFloat32, {37, 19, 11});
  SaveOptions save{.layout = GetParam()};
  save.chunk_bytes = 1000;
  ASSERT_TRUE(save_tree(Tree::dict({{"w", whole}}), dir / "c", save, runtime));
  const auto checkpoint = open_checkpoint(dir / "c", runtime);
  ASSERT_TRUE(checkpoint);
  for (int round = 0; round < 300; ++round) {
    Box box{{0, 0, 0}, {0, 0, 0}};
    for (std::size_t d = 0; d < 3; ++d) {
      const auto size = static_cast<std::uint64_t>(whole.shape()[d]);
      const auto a = static_cast<Index>(testing::below(random, size + 1));
      const auto b = static_cast<Index>(testing::below(random, size + 1));
      box.begin[d] = std::min(a, b);
      box.end[d] = std::max(a, b);
    }
    const auto slice = load_box(checkpoint->prefixes[0], 0, box, runtime, round % 2 == 0);
    ASSERT_TRUE(slice) << slice.error().to_string();
    const auto expected = whole.slice(box).to_dense();
    ASSERT_EQ(difference(Tree(*slice), Tree(*expected)), "") << box.to_string();
  }
}

TEST_P(RoundTrip, SavingAPrefixAgainReplacesItAndLeavesTheOthers) {
  Runtime runtime;
  TempDir dir;
  const SaveOptions save{.layout = GetParam(), .overwrite = true};
  const Tree first = array_tree(DType::kFloat32, {4}, 1);
  const Tree second = Tree::dict({{"v", array_tree(DType::kInt32, {3}, 2)}});
  ASSERT_TRUE(save_checkpoint({{"model", first}, {"tx", second}}, dir / "c", save, runtime));
  testing::write_file(dir / "c/README", "mine");
  ASSERT_TRUE(save_tree(second, dir / "c", save, runtime, "model"));
  const auto model = load(dir / "c", {.prefix = "model"}, runtime);
  const auto tx = load(dir / "c", {.prefix = "tx"}, runtime);
  ASSERT_TRUE(model) << model.error().to_string();
  ASSERT_TRUE(tx) << tx.error().to_string();
  EXPECT_EQ(difference(model->tree, second), "");
  EXPECT_EQ(difference(tx->tree, second), "");
  EXPECT_EQ(testing::read_file(dir / "c/README"), "mine");
  const auto neither = load(dir / "c", {}, runtime);
  ASSERT_FALSE(neither);
  EXPECT_EQ(neither.error().reason(), "load/prefix-ambiguous");
  const auto missing = load(dir / "c", {.prefix = "opt"}, runtime);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason(), "load/prefix-missing");
  EXPECT_NE(missing.error().message().find("model, tx"), std::string::npos);
  if (GetParam() == kSafetensorsLayout) return;  // a tree without a name is called model there
  ASSERT_TRUE(save_tree(first, dir / "c", save, runtime));
  const auto unnamed = load(dir / "c", {}, runtime);
  ASSERT_TRUE(unnamed) << unnamed.error().to_string();
  EXPECT_EQ(difference(unnamed->tree, first), "");
}

TEST_P(RoundTrip, ADamagedByteIsNamedByLeafAndPlace) {
  Runtime runtime;
  TempDir dir;
  ASSERT_TRUE(save_tree(array_tree(DType::kFloat32, {64, 64}), dir / "c", {.layout = GetParam()},
                        runtime, "m"));
  const std::string file = dir / (GetParam() == kZarr2Layout ? "c/m/w/0.0" : "c/m.safetensors");
  std::string bytes = testing::read_file(file);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  testing::write_file(file, bytes);
  const auto loaded = load(dir / "c", {}, runtime);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::kCorrupt);
  EXPECT_EQ(loaded.error().reason(), "load/checksum");
  EXPECT_NE(loaded.error().to_string().find("leaf w"), std::string::npos)
      << loaded.error().to_string();
  EXPECT_TRUE(load(dir / "c", {.check = false}, runtime));
}

INSTANTIATE_TEST_SUITE_P(Layouts, RoundTrip,
                         ::testing::Values(std::string(kZarr2Layout),
                                           std::string(kSafetensorsLayout)));

TEST(SaveStructures, ComeAndGoWithTheirPrefix) {
  Runtime runtime;
  TempDir dir;
  const Tree tree = array_tree(DType::kInt32, {4});
  const std::string file = dir / "c/model_structure.json";
  const SaveInternals first{.structures = {{"model", "first"}, {"tx", "other"}}};
  ASSERT_TRUE(save_checkpoint({{"model", tree}, {"tx", tree}}, dir / "c", {}, runtime, &first));
  EXPECT_EQ(testing::read_file(file), "first");
  EXPECT_EQ(testing::read_file(dir / "c/tx_structure.json"), "other");
  const SaveInternals second{.structures = {{"model", "second"}}};
  ASSERT_TRUE(save_checkpoint({{"model", tree}}, dir / "c", {}, runtime, &second));
  EXPECT_EQ(testing::read_file(file), "second");
  const auto loaded = load(dir / "c", {.prefix = "model"}, runtime);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(difference(tree, loaded->tree), "");
  ASSERT_TRUE(save_tree(tree, dir / "c", {}, runtime, "model"));
  EXPECT_NE(testing::read_file(file).find("pytree-structure"), std::string::npos) << "our own";
  ASSERT_TRUE(save_tree(tree, dir / "c", {.write_index = false}, runtime, "model"));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(dir / "c/tx_structure.json"));
  const SaveOptions others{.layout = std::string(kSafetensorsLayout)};
  ASSERT_TRUE(save_checkpoint({{"model", tree}}, dir / "s", others, runtime, &first));
  EXPECT_FALSE(std::filesystem::exists(dir / "s/model_structure.json"));
}

TEST(BareFiles, ShowTheUsersTextsToEverybody) {
  Runtime runtime;
  TempDir dir;
  SaveOptions options;
  options.metadata = Json(Json::Object{{"who", "us"}, {"count", 3}, {"cairn", "not this"}});
  ASSERT_TRUE(save_tree(array_tree(DType::kInt32, {4}), dir / "a.safetensors", options, runtime));
  const auto text = testing::read_file(dir / "a.safetensors");
  const auto length = format::safetensors::parse_header_length(
      as_bytes(std::string_view(text).substr(0, 8)), text.size());
  ASSERT_TRUE(length) << length.error().to_string();
  const auto header =
      format::safetensors::parse_header(std::string_view(text).substr(8, *length), text.size());
  ASSERT_TRUE(header) << header.error().to_string();
  std::map<std::string, std::string> seen(header->metadata.begin(), header->metadata.end());
  EXPECT_EQ(seen["who"], "us");
  EXPECT_EQ(seen["format"], "pt");
  EXPECT_NE(seen["cairn"], "not this");
  EXPECT_EQ(seen.size(), 3U);
  const auto loaded = load(dir / "a.safetensors", {}, runtime);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->metadata, options.metadata);
}

TEST(BareFiles, OfOthersKeepTheirMetadata) {
  Runtime runtime;
  TempDir dir;
  std::vector<format::safetensors::Tensor> none;
  const auto header = format::safetensors::make_header(none, {{"who", "they"}});
  ASSERT_TRUE(header);
  testing::write_file(dir / "a.safetensors", *header);
  const auto loaded = load(dir / "a.safetensors", {}, runtime);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_TRUE(loaded->foreign);
  EXPECT_EQ(loaded->metadata, Json(Json::Object{{"who", "they"}}));
}

TEST(OpenCheckpoint, ADirectoryOfCheckpointsIsNone) {
  const TempDir dir;
  Runtime runtime;
  for (const char* name : {"run-1", "run-2"})
    ASSERT_TRUE(save_tree(array_tree(DType::kInt8, {3}), dir / name, {}, runtime));
  const auto refused = open_checkpoint(dir.path(), runtime);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "checkpoint/not-a-checkpoint");
  EXPECT_NE(refused.error().message().find("run-2"), std::string::npos);
  std::filesystem::copy(dir / "run-1/w", dir / "loose", std::filesystem::copy_options::recursive);
  const auto loose = open_checkpoint(dir.path(), runtime);
  ASSERT_TRUE(loose) << loose.error().to_string();
  EXPECT_EQ(loose->prefixes.front().manifest.arrays.size(), 1U);
}

}  // namespace
}  // namespace cairn
