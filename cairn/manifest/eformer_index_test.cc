// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/eformer_index.h"

#include <gtest/gtest.h>

#include "cairn/testing/must.h"

namespace cairn {
namespace {

using testing::must;

Json list_of(const std::string& path) { return index_list({{path, {2, 3}, "float32"}}); }

TEST(EformerIndex, ReadsBothVersions) {
  const auto v1 = parse_eformer_index(
      R"({"format": "tensorstore", "arrays": [{"path": "a/b", "shape": [4], "dtype": "f"}]})");
  ASSERT_TRUE(v1);
  ASSERT_TRUE(v1->arrays);
  EXPECT_EQ((*v1->arrays)[0].path, "a/b");
  EXPECT_EQ((*v1->arrays)[0].shape, Shape{4});
  const auto v2 = parse_eformer_index(
      R"({"format": "tensorstore", "version": "easydel", "prefixes": {"model": [], "tx": []}})");
  ASSERT_TRUE(v2);
  EXPECT_EQ(v2->prefixes.size(), 2u);
  EXPECT_FALSE(v2->arrays);
}

TEST(EformerIndex, RefusesDamageByName) {
  const std::pair<const char*, const char*> damages[] = {
      {"{", "index/bad-json"},
      {"[]", "index/bad-json"},
      {R"({"format": "orbax", "prefixes": {}})", "index/format"},
      {R"({"prefixes": {}})", "index/format"},
      {R"({"format": "tensorstore"})", "index/bad-member"},
      {R"({"format": "tensorstore", "prefixes": []})", "index/bad-member"},
      {R"({"format": "tensorstore", "arrays": [{"path": "a", "shape": [-1], "dtype": "f"}]})",
       "index/bad-member"},
      {R"({"format": "tensorstore", "arrays": [{"shape": [1], "dtype": "f"}]})",
       "index/bad-member"},
      {R"({"format": "tensorstore", "arrays": [{"path": "../x", "shape": [1], "dtype": "f"}]})",
       "index/unsafe-path"},
      {R"({"format": "tensorstore", "arrays": [{"path": "/x", "shape": [1], "dtype": "f"}]})",
       "index/unsafe-path"},
  };
  for (const auto& [text, reason] : damages) {
    const auto parsed = parse_eformer_index(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().reason(), reason) << text;
  }
  const auto other = parse_eformer_index(R"({"format": "orbax", "prefixes": {}})");
  EXPECT_NE(other.error().message().find("unsupported index format: \"orbax\""), std::string::npos);
}

TEST(EformerIndex, RefusesTooManyPrefixes) {
  const auto index_of = [](std::size_t prefixes) {
    Json::Object lists;
    for (std::size_t i = 0; i < prefixes; ++i)
      lists.emplace_back(std::to_string(i), Json(Json::Array()));
    return parse_eformer_index(dump_json(
        Json(Json::Object{{"format", "tensorstore"}, {"prefixes", Json(std::move(lists))}})));
  };
  EXPECT_EQ(testing::reason(index_of(kMaxIndexedPrefixes)), "none");
  EXPECT_EQ(testing::reason(index_of(kMaxIndexedPrefixes + 1)), "index/too-many-prefixes");
}

TEST(EformerIndex, IsNotWrittenWithMorePrefixesThanAreRead) {
  IndexChanges changes;
  for (std::size_t i = 0; i < kMaxIndexedPrefixes; ++i)
    changes.emplace_back(std::to_string(i), Json(Json::Array()));
  const auto most = merge_eformer_index(std::nullopt, changes);
  EXPECT_EQ(testing::reason(most), "none");
  EXPECT_EQ(testing::reason(merge_eformer_index(*must(most), {{"one more", Json(Json::Array())}})),
            "index/too-many-prefixes");
}

TEST(EformerIndex, KnowsThePartsOfNodesWithoutKeys) {
  const std::pair<const char*, const char*> parts[] = {
      {"<flat index 0>", "0"},
      {"<flat index 12>", "12"},
      {"0", "0"},
      {"", ""},
      {"<flat index >", "<flat index >"},
      {"<flat index x>", "<flat index x>"},
      {"<flat index 0", "<flat index 0"},
  };
  for (const auto& [theirs, ours] : parts) EXPECT_EQ(part_of_reference(theirs), ours);
}

TEST(EformerIndex, MergingOnePrefixKeepsAllElse) {
  const auto first = must(merge_eformer_index(std::nullopt, {{"model", list_of("model/w")}}));
  ASSERT_TRUE(first);
  std::string edited = *first;
  edited.insert(1, "\"mine\": 5,");
  const auto second = must(merge_eformer_index(edited, {{"tx", list_of("tx/m")}}));
  ASSERT_TRUE(second);
  EXPECT_NE(second->find("\"mine\""), std::string::npos);
  const auto parsed = parse_eformer_index(*second);
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->prefixes.size(), 2u);
  EXPECT_EQ(parsed->prefixes[0].arrays[0].path, "model/w");
  const auto third =
      parse_eformer_index(*must(merge_eformer_index(second, {{"model", std::nullopt}})));
  ASSERT_TRUE(third);
  ASSERT_EQ(third->prefixes.size(), 1u);
  EXPECT_EQ(third->prefixes[0].name, "tx");
}

TEST(EformerIndex, ATreeWithoutPrefixIsTheListOfArrays) {
  const auto merged = must(merge_eformer_index(std::nullopt, {{"", list_of("w")}}));
  ASSERT_TRUE(merged);
  const auto parsed = parse_eformer_index(*merged);
  ASSERT_TRUE(parsed && parsed->arrays);
  EXPECT_EQ((*parsed->arrays)[0].path, "w");
  EXPECT_TRUE(parsed->prefixes.empty());
}

TEST(EformerIndex, NoneIsMadeForNothing) {
  EXPECT_FALSE(must(merge_eformer_index(std::nullopt, {{"model", std::nullopt}})));
}

TEST(EformerIndex, ATextThatIsNoIndexIsReplaced) {
  const auto merged = must(merge_eformer_index("torn {", {{"model", list_of("model/w")}}));
  ASSERT_TRUE(merged);
  EXPECT_TRUE(parse_eformer_index(*merged));
}

}  // namespace
}  // namespace cairn
