// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load.h"

#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/array/cast.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/save/save.h"
#include "cairn/sharding/named_sharding.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"
#include "cairn/tree/flatten.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::must;

template <typename T>
Array array_of(DType dtype, Shape shape, const std::vector<T>& values) {
  Array array = *Array::allocate(dtype, std::move(shape));
  std::memcpy(array.mutable_data(), values.data(), values.size() * sizeof(T));
  return array;
}

Array floats(Shape shape, const std::vector<float>& values) {
  return array_of(DType::kFloat32, std::move(shape), values);
}

const Array& leaf(const Tree& tree, const Key& key) {
  return std::get<ShardedArray>(tree.find(key)->leaf()).array();
}

std::vector<float> numbers(const Array& array) {
  const auto* data = reinterpret_cast<const float*>(array.data());
  return {data, data + array.elements()};
}

class Loading : public ::testing::Test {
 protected:
  void SetUp() override {
    const Tree tree = Tree::dict({{"a", floats({2, 2}, {1, 2, 3, 4})},
                                  {"b", Tree::list({floats({3}, {5, 6, 7}), Value(Integer(9))})},
                                  {"n", array_of<std::int32_t>(DType::kInt32, {2}, {1, 2})}});
    SaveOptions save;
    save.enable_validation = true;
    save.step = 4;
    save.metadata = Json(Json::Object{{"run", "r1"}});
    save.extras = Json(Json::Object{{"x", 1}});
    const auto saved = save_tree(tree, dir_ / "c", save, runtime_, "model");
    ASSERT_TRUE(saved) << saved.error().to_string();
  }

  Runtime runtime_;
  testing::TempDir dir_;
};

TEST_F(Loading, GivesMetadataExtrasAndAReport) {
  const auto loaded = load(dir_ / "c", {.validate = true}, runtime_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->path, dir_ / "c");
  EXPECT_EQ(*loaded->metadata.find("run")->text(), "r1");
  EXPECT_EQ(loaded->extras.find("x")->integer(), 1);
  EXPECT_THAT(loaded->report.loaded, ElementsAre("a", "b.0", "n"));
  EXPECT_THAT(loaded->report.cast, IsEmpty());
  EXPECT_EQ(loaded->report.bytes, 36u);
}

TEST_F(Loading, TakesOnlyWhatIsAskedFor) {
  const auto part = load(dir_ / "c", {.keys = {*KeyPath::parse("b")}}, runtime_);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->tree.find("a"), nullptr);
  EXPECT_EQ(numbers(leaf(*part->tree.find("b"), "0")), (std::vector<float>{5, 6, 7}));
  const auto none = load(dir_ / "c", {.keys = {*KeyPath::parse("c")}}, runtime_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason(), "load/key-missing");
}

TEST_F(Loading, CastsFloatsAlone) {
  const auto loaded = load(dir_ / "c", {.dtype = DType::kBfloat16, .validate = true}, runtime_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(leaf(loaded->tree, "a").dtype(), DType::kBfloat16);
  EXPECT_EQ(leaf(loaded->tree, "n").dtype(), DType::kInt32);
  EXPECT_THAT(loaded->report.cast, ElementsAre("a", "b.0"));
  const auto wrong = load(dir_ / "c", {.dtype = DType::kInt8}, runtime_);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().reason(), "load/float-dtype");
}

TEST_F(Loading, AStrictTemplateListsEveryMismatch) {
  const Tree like = Tree::dict({{"a", floats({4}, {0, 0, 0, 0})},
                                {"b", Tree::list({floats({2}, {0, 0}), Value(Integer(0))})},
                                {"m", floats({1}, {0})}});
  const auto loaded = load(dir_ / "c", {.like = &like}, runtime_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().reason(), "load/missing-array");
  EXPECT_THAT(loaded.error().message(), HasSubstr("Missing array for key 'm'"));
  EXPECT_THAT(loaded.error().message(), HasSubstr("Array shape mismatch for key 'a'"));
  EXPECT_THAT(loaded.error().message(), HasSubstr("Array shape mismatch for key 'b.0'"));
}

TEST_F(Loading, ATemplateMayAskForItsTypes) {
  const Array half = must(Array::zeros(DType::kBfloat16, {2, 2}));
  const Tree like = Tree::dict({{"a", half}, {"n", must(Array::zeros(DType::kInt64, {2}))}});
  EXPECT_EQ(leaf(must(load(dir_ / "c", {.like = &like}, runtime_)).tree, "a").dtype(),
            DType::kFloat32);
  const auto refused = load(dir_ / "c", {.like = &like, .like_dtypes = true}, runtime_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "load/dtype-mismatch");
  EXPECT_THAT(refused.error().message(),
              HasSubstr("Array dtype mismatch for key 'n': expected int64, the checkpoint has "
                        "int32"));
  const auto loaded = must(
      load(dir_ / "c", {.like = &like, .strict_shapes = false, .like_dtypes = true}, runtime_));
  EXPECT_EQ(leaf(loaded.tree, "a").dtype(), DType::kBfloat16);
  EXPECT_EQ(leaf(loaded.tree, "n").dtype(), DType::kInt32);
  EXPECT_THAT(loaded.report.cast, ElementsAre("a"));
  EXPECT_THAT(loaded.report.mismatched, ElementsAre("n"));
}

TEST_F(Loading, AnEasyTemplateReshapesAndKeepsTheRest) {
  const Tree like = Tree::dict({{"a", floats({1, 4}, {0, 0, 0, 0})},
                                {"b", Tree::tuple({floats({2}, {8, 8}), Value(Integer(0))})},
                                {"m", floats({1}, {3})}});
  const auto loaded = load(dir_ / "c", {.like = &like, .strict_shapes = false}, runtime_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(leaf(loaded->tree, "a").shape(), (Shape{1, 4}));
  EXPECT_EQ(numbers(leaf(loaded->tree, "a")), (std::vector<float>{1, 2, 3, 4}));
  const Tree& b = *loaded->tree.find("b");
  EXPECT_EQ(b.kind(), TreeKind::kTuple);
  EXPECT_EQ(numbers(leaf(b, 0)), (std::vector<float>{8, 8}));
  EXPECT_EQ(std::get<Integer>(std::get<Value>(b.find(1)->leaf())), Integer(9));
  EXPECT_EQ(numbers(leaf(loaded->tree, "m")), (std::vector<float>{3}));
  EXPECT_THAT(loaded->report.missing, ElementsAre("m"));
  EXPECT_THAT(loaded->report.mismatched, ElementsAre("a", "b.0"));
  EXPECT_THAT(loaded->report.kept, ElementsAre("b.0", "m"));
  EXPECT_THAT(loaded->report.unexpected, ElementsAre("n"));
}

TEST_F(Loading, AnEasyTemplateReshapesOntoAMesh) {
  const Mesh mesh = must(Mesh::over_ranks({{"x", 2}}, 2));
  const Sharding rows = must(NamedSharding::make(mesh, {{"x"}}));
  const Tree like = Tree::dict({{"a", must(ShardedArray::make(DType::kFloat32, {4}, rows, {}))}});
  const auto loaded = must(load(dir_ / "c", {.like = &like, .strict_shapes = false}, runtime_));
  const auto& a = std::get<ShardedArray>(loaded.tree.find("a")->leaf());
  EXPECT_EQ(a.sharding(), rows);
  ASSERT_EQ(a.shards().size(), 1u);
  EXPECT_EQ(numbers(a.shards().front().data), (std::vector<float>{1, 2}));
  EXPECT_THAT(loaded.report.kept, IsEmpty());
  EXPECT_THAT(loaded.report.mismatched, ElementsAre("a"));
}

TEST_F(Loading, WhatTheKeysDoNotNameStaysTheTemplates) {
  const Tree like =
      Tree::dict({{"a", floats({2, 2}, {0, 0, 0, 0})},
                  {"b", Tree::list({floats({5}, {8, 8, 8, 8, 8}), Value(Integer(0))})},
                  {"m", floats({1}, {3})}});
  const auto loaded = load(dir_ / "c", {.keys = {KeyPath({"a"})}, .like = &like}, runtime_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(numbers(leaf(loaded->tree, "a")), (std::vector<float>{1, 2, 3, 4}));
  const Tree& b = *loaded->tree.find("b");
  EXPECT_EQ(numbers(leaf(b, 0)), (std::vector<float>{8, 8, 8, 8, 8}));
  EXPECT_EQ(std::get<Integer>(std::get<Value>(b.find(1)->leaf())), Integer(0));
  EXPECT_EQ(numbers(leaf(loaded->tree, "m")), (std::vector<float>{3}));
  EXPECT_THAT(loaded->report.loaded, ElementsAre("a"));
  EXPECT_THAT(loaded->report.unexpected, ElementsAre());
  for (const char* key : {"n", "m"}) {  // in one of both alone
    const auto refused = load(dir_ / "c", {.keys = {KeyPath({key})}, .like = &like}, runtime_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason(), "load/key-missing");
  }
}

TEST_F(Loading, FillsTheTemplatesOwnMemory) {
  Array a = floats({2, 2}, {0, 0, 0, 0});
  Array wide = *Array::zeros(DType::kFloat64, {3});
  const Tree like = Tree::dict({{"a", a}, {"b", Tree::list({wide, Value(Integer(0))})}});
  const auto loaded = load(dir_ / "c", {.like = &like, .fill = true}, runtime_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(numbers(a), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(reinterpret_cast<const double*>(wide.data())[2], 7.0);
  EXPECT_THAT(loaded->report.cast, ElementsAre("b.0"));
  const Tree integers = Tree::dict({{"a", *Array::zeros(DType::kInt32, {2, 2})}});
  const auto wrong = load(dir_ / "c", {.like = &integers, .fill = true}, runtime_);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().reason(), "load/cannot-fill");
}

TEST_F(Loading, ChecksTheDigestWhenAsked) {
  auto checkpoint = open_checkpoint(dir_ / "c", runtime_);
  ASSERT_TRUE(checkpoint);
  checkpoint->prefixes[0].manifest.arrays[0].sha256 = std::string(64, '0');
  EXPECT_TRUE(load(*checkpoint, {}, runtime_));
  const auto loaded = load(*checkpoint, {.validate = true}, runtime_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().reason(), "load/sha256");
}

TEST_F(Loading, ShardingsMayBeChosenOnceItIsKnownWhatThereIs) {
  const Mesh mesh = *Mesh::over_ranks({{"x", 2}}, 1);
  const auto on = [&](PartitionSpec spec) {
    return Sharding(*NamedSharding::make(mesh, std::move(spec)));
  };
  const ShardingTree others{{KeyPath({"a"}), on({})}, {KeyPath({"n"}), on({{"x"}})}};
  LoadOptions options{.shardings = &others};
  options.choose_shardings = [&](const OpenedPrefix& prefix) {
    std::vector<std::optional<ShardingWish>> chosen(prefix.manifest.arrays.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (prefix.manifest.arrays[i].path.text() == "a") chosen[i] = on({{"x"}});
    }
    return Result<std::vector<std::optional<ShardingWish>>>(chosen);
  };
  const auto loaded = load(dir_ / "c", options, runtime_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  const auto sharding = [&](const Key& key) {
    return std::get<ShardedArray>(loaded->tree.find(key)->leaf()).sharding();
  };
  EXPECT_EQ(sharding("a"), on({{"x"}}));
  EXPECT_EQ(sharding("n"), on({{"x"}}));
  options.choose_shardings = [](const OpenedPrefix&) {
    return Result<std::vector<std::optional<ShardingWish>>>(Error(Code::kCancelled, "x/y", "no"));
  };
  EXPECT_EQ(load(dir_ / "c", options, runtime_).error().reason(), "x/y");
}

TEST_F(Loading, OfOthersAPrefixMayBePartOfThePaths) {
  std::filesystem::remove(dir_ / "c/cairn.json");
  std::filesystem::remove(dir_ / "c/tensorstore_index.json");
  const auto loaded = load(dir_ / "c", {.prefix = "model"}, runtime_);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_NE(loaded->tree.find("model"), nullptr);
  EXPECT_EQ(load(dir_ / "c", {.prefix = "a"}, runtime_).error().reason(), "load/prefix-missing");
}

TEST_F(Loading, SaysWhatIsNotThere) {
  EXPECT_EQ(load(dir_ / "nothing", {}, runtime_).error().reason(), "checkpoint/not-found");
  testing::write_file(dir_ / "text", "no checkpoint");
  EXPECT_EQ(load(dir_ / "text", {}, runtime_).error().code(), Code::kCorrupt);
  EXPECT_EQ(load(dir_ / "c", {.prefix = "x"}, runtime_).error().reason(), "load/prefix-missing");
  EXPECT_EQ(load(dir_.path(), {}, runtime_).error().reason(), "checkpoint/not-a-checkpoint");
}

TEST_F(Loading, AManifestThatWasEditedIsNoticed) {
  std::string text = testing::read_file(dir_ / "c/model/.cairn.json");
  text.insert(1, " ");
  testing::write_file(dir_ / "c/model/.cairn.json", text);
  const auto loaded = load(dir_ / "c", {}, runtime_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().reason(), "checkpoint/manifest-digest");
}

// Into memory of another type, and into memory that is not dense.
TEST(LoadingForeign, AChunkThatIsNotThereIsTheFillValueWhereverItGoes) {
  const testing::TempDir dir;
  Runtime runtime;
  std::filesystem::create_directories(dir / "w");
  testing::write_file(dir / "w/.zarray",
                      R"({"chunks":[2,3],"compressor":null,"dtype":"<f4","fill_value":2.5,)"
                      R"("filters":null,"order":"C","shape":[4,6],"zarr_format":2})");
  EXPECT_THAT(numbers(leaf(must(load(dir.path(), {}, runtime)).tree, "w")),
              ::testing::AllOf(::testing::SizeIs(24), ::testing::Each(2.5)));
  const Loaded wide = must(load(dir.path(), {.dtype = DType::kFloat64}, runtime));
  const Array narrow = must(cast_array(leaf(wide.tree, "w"), DType::kFloat32));
  EXPECT_THAT(numbers(narrow), ::testing::AllOf(::testing::SizeIs(24), ::testing::Each(2.5)));
}

}  // namespace
}  // namespace cairn
