// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/index.h"

#include <gtest/gtest.h>

namespace cairn::format::safetensors {
namespace {

std::string reason_of(std::string_view text) {
  const auto index = parse_index(text);
  return index ? "accepted" : std::string(index.error().reason());
}

TEST(SafetensorsIndex, ReadsTensorsPartsAndMetadata) {
  const auto index = parse_index(
      R"({"metadata":{"total_size":12,"x":[1]},"weight_map":{"b":"m-2.safetensors",)"
      R"("a":"m-1.safetensors","c":"sub/m-1.safetensors","d":"m-1.safetensors"},"more":1})");
  ASSERT_TRUE(index) << index.error().to_string();
  EXPECT_EQ(index->weight_map, (WeightMap{{"a", "m-1.safetensors"},
                                          {"b", "m-2.safetensors"},
                                          {"c", "sub/m-1.safetensors"},
                                          {"d", "m-1.safetensors"}}));
  EXPECT_EQ(index->parts(), (std::vector<std::string>{"m-1.safetensors", "m-2.safetensors",
                                                      "sub/m-1.safetensors"}));
  EXPECT_EQ(index->metadata.find("total_size")->integer(), 12);
}

TEST(SafetensorsIndex, NeedsOnlyAWeightMap) {
  const auto index = parse_index(R"({"weight_map":{}})");
  ASSERT_TRUE(index);
  EXPECT_TRUE(index->metadata.is_null());
  EXPECT_TRUE(index->parts().empty());
  EXPECT_EQ(reason_of(R"({"weight_map":{},"metadata":null})"), "accepted");
  EXPECT_EQ(reason_of(R"({"weight_map":{"a":"x","a":"x"}})"), "accepted");
}

TEST(SafetensorsIndex, RefusesEachDamageByItsReason) {
  struct Case {
    std::string text;
    std::string_view reason;
  };
  const Case cases[] = {
      {"{", "safetensors-index/not-json"},
      {"", "safetensors-index/not-json"},
      {"[]", "safetensors-index/not-json"},
      {"{\"weight_map\":{\"\xFF\":\"x\"}}", "safetensors-index/not-json"},
      {R"({"metadata":{}})", "safetensors-index/no-weight-map"},
      {R"({"weight_map":[]})", "safetensors-index/weight-map-type"},
      {R"({"weight_map":null})", "safetensors-index/weight-map-type"},
      {R"({"weight_map":{},"weight_map":{}})", "safetensors-index/duplicate-member"},
      {R"({"weight_map":{},"metadata":{},"metadata":{}})", "safetensors-index/duplicate-member"},
      {R"({"weight_map":{},"metadata":[]})", "safetensors-index/metadata-type"},
      {R"({"weight_map":{"a":1}})", "safetensors-index/part-type"},
      {R"({"weight_map":{"a":null}})", "safetensors-index/part-type"},
      {R"({"weight_map":{"a":""}})", "safetensors-index/part-path"},
      {R"({"weight_map":{"a":"/etc/hostname"}})", "safetensors-index/part-path"},
      {R"({"weight_map":{"a":"../x.safetensors"}})", "safetensors-index/part-path"},
      {R"({"weight_map":{"a":"x/../../y"}})", "safetensors-index/part-path"},
      {R"({"weight_map":{"a":"./x"}})", "safetensors-index/part-path"},
      {R"({"weight_map":{"a":"x\u0000"}})", "safetensors-index/part-path"},
      {R"({"weight_map":{"a":"x/"}})", "safetensors-index/part-path"},
      {R"({"weight_map":{"a":"x","b":"y","a":"z"}})", "safetensors-index/duplicate-tensor"},
  };
  for (const Case& c : cases) {
    const auto index = parse_index(c.text);
    ASSERT_FALSE(index) << c.text;
    EXPECT_EQ(index.error().reason(), c.reason) << c.text;
    EXPECT_EQ(index.error().code(), Code::kCorrupt) << c.text;
  }
}

// The text is what Python's json.dumps(index, indent=2) makes, as huggingface_hub writes it.
TEST(SafetensorsIndex, WritesTheTextThatPythonWrites) {
  Index index;
  index.weight_map = {{"w", "m-00001-of-00002.safetensors"}, {"\xC3\xA9", "p.safetensors"}};
  EXPECT_EQ(dump_index(index, 5'000'000'000),
            "{\n  \"metadata\": {\n    \"total_size\": 5000000000\n  },\n  \"weight_map\": {\n"
            "    \"w\": \"m-00001-of-00002.safetensors\",\n    \"\\u00e9\": \"p.safetensors\"\n"
            "  }\n}");
}

TEST(SafetensorsIndex, KeepsItsOwnMetadataBesideTheTotalSize) {
  Index index;
  index.weight_map = {{"a", "p"}};
  index.metadata.set("total_size", 1);
  index.metadata.set("note", "x");
  const auto again = parse_index(dump_index(index, 7));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->weight_map, index.weight_map);
  EXPECT_EQ(again->metadata.find("total_size")->integer(), 7);
  EXPECT_EQ(*again->metadata.find("note")->text(), "x");
  EXPECT_EQ(again->metadata.object()->size(), 2u);
}

// The results are those of eformer 0.0.101 for the same paths.
TEST(SafetensorsNames, DeriveTheBaseAsTheReferenceDoes) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"/x/model.safetensors", "/x/model"},
      {"/x/model.safetensors.index.json", "/x/model"},
      {"/x/model-00001-of-00004.safetensors", "/x/model"},
      {"model-00001-of-00004", "model"},
      {"model", "model"},
      {"", ""},
      {"a/b-1-of-2.safetensors", "a/b-1-of-2"},
      {"m-00001-of-00002.safetensors.index.json", "m-00001-of-00002"},
      {"-00001-of-00002.safetensors", ""},
      {".safetensors", ""},
      {".safetensors.index.json", ""},
      {"m-000001-of-000002.safetensors", "m-000001-of-000002"},
      {"m-00001-of-00002-00003-of-00004.safetensors", "m-00001-of-00002"},
      {"m-00001-of-0000x", "m-00001-of-0000x"},
      {"gs://b/run/model-12345-of-67890.safetensors", "gs://b/run/model"},
      {"model.safetensors.safetensors", "model.safetensors"},
      {"m-0001-of-00002", "m-0001-of-00002"},
      {"x12345-of-00002", "x12345-of-00002"},
      {"m-00001-OF-00002", "m-00001-OF-00002"},
      {"/a/model.SAFETENSORS", "/a/model.SAFETENSORS"},
      {"model.safetensors.index", "model.safetensors.index"},
      {"00001-of-00002", "00001-of-00002"},
  };
  for (const auto& [path, base] : kCases) EXPECT_EQ(derive_base_prefix_from_path(path), base);
}

TEST(SafetensorsNames, NamePartsAndIndexAsTheReferenceDoes) {
  EXPECT_EQ(shard_filename("model", 1, 1), "model-00001-of-00001.safetensors");
  EXPECT_EQ(shard_filename("/c/model", 1, 4), "/c/model-00001-of-00004.safetensors");
  EXPECT_EQ(shard_filename("m", 12, 345), "m-00012-of-00345.safetensors");
  EXPECT_EQ(shard_filename("m", 100000, 123456), "m-100000-of-123456.safetensors");
  EXPECT_EQ(shard_filename("", 1, 2), "-00001-of-00002.safetensors");
  EXPECT_EQ(index_filename("/c/model"), "/c/model.safetensors.index.json");
}

}  // namespace
}  // namespace cairn::format::safetensors
