// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

constexpr JsonLimits kLimits = {.depth = kMaxStructureJsonDepth};

Tree leaf() { return Tree(Value(Integer(7))); }
Tree array() { return Tree(Array()); }

Json parsed(const std::string& text) {
  auto json = parse_json(text, kLimits);
  EXPECT_TRUE(json) << json.error().to_string();
  return json ? *std::move(json) : Json();
}

std::vector<ShardedArray> arrays_of(const std::vector<NamedLeaf>& leaves) {
  std::vector<ShardedArray> arrays;
  for (const NamedLeaf& named : leaves) {
    if (is_array_like(named.leaf)) arrays.push_back(std::get<ShardedArray>(named.leaf));
  }
  return arrays;
}

std::vector<ShardedArray> blank_arrays(std::size_t count) {
  return std::vector<ShardedArray>(count, ShardedArray(Array()));
}

TEST(Structure, IsWrittenAsTheGrammarSays) {
  const struct {
    Tree tree;
    const char* json;
  } cases[] = {
      {array(), R"("array")"},
      {Tree::none(), "null"},
      {leaf(), R"({"value":{"type":"int","value":"7"}})"},
      {Tree::dict(), R"({"dict":[]})"},
      {Tree::dict({{"b", array()}, {"a", Tree::none()}, {2, array()}, {-1, array()}}),
       R"({"dict":[[-1,"array"],[2,"array"],["a",null],["b","array"]]})"},
      {Tree::list({array(), Tree::tuple()}), R"({"list":["array",{"tuple":[]}]})"},
      {Tree::named_tuple("optax:State", {{"nu", array()}, {"mu", array()}}),
       R"({"namedtuple":[["nu","array"],["mu","array"]],"class":"optax:State"})"},
      {Tree::attributes("", {}), R"({"attributes":[],"class":""})"},
      {Tree::custom("m:C", {{0, array()}}), R"({"custom":[[0,"array"]],"class":"m:C"})"},
  };
  for (const auto& c : cases) {
    const auto json = structure_to_json(c.tree);
    ASSERT_TRUE(json) << c.json;
    EXPECT_EQ(dump_json(*json), c.json);
    const auto back = tree_from_structure(parsed(c.json), arrays_of(*flatten(c.tree)));
    ASSERT_TRUE(back) << c.json;
    EXPECT_EQ(testing::difference(*back, c.tree), "") << c.json;
  }
}

TEST(Structure, GivesEveryTreeBackFromItsText) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Tree tree = testing::random_tree(seed);
    const auto json = structure_to_json(tree);
    ASSERT_TRUE(json) << json.error().to_string();
    const auto leaves = flatten(tree);
    ASSERT_TRUE(leaves);
    const auto back = tree_from_structure(parsed(dump_json(*json)), arrays_of(*leaves));
    ASSERT_TRUE(back) << back.error().to_string();
    ASSERT_EQ(testing::difference(*back, tree), "") << "seed " << seed;
  }
}

TEST(Structure, ListsTheLeavesThatFlattenGives) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Tree tree = testing::random_tree(seed);
    const auto found = structure_leaves(*structure_to_json(tree));
    ASSERT_TRUE(found);
    std::size_t array_index = 0;
    std::size_t value_index = 0;
    const auto leaves = *flatten(tree);
    ASSERT_EQ(found->arrays.size() + found->values.size(), leaves.size()) << "seed " << seed;
    for (const NamedLeaf& named : leaves) {
      if (is_array_like(named.leaf)) {
        ASSERT_LT(array_index, found->arrays.size());
        EXPECT_EQ(found->arrays[array_index++], named.path);
      } else {
        ASSERT_LT(value_index, found->values.size());
        EXPECT_EQ(found->values[value_index].first, named.path);
        EXPECT_TRUE(same_value(found->values[value_index++].second, std::get<Value>(named.leaf)));
      }
    }
  }
}

TEST(Structure, HoldsTheDeepestTree) {
  Tree tree = Tree(Value(std::complex<double>(1, 2)));
  for (int i = 0; i < kMaxTreeDepth; ++i) {
    Tree::Children children;
    children.emplace_back("k", std::move(tree));
    tree = Tree::custom("", std::move(children));
  }
  const auto json = structure_to_json(tree);
  ASSERT_TRUE(json);
  const auto back = tree_from_structure(parsed(dump_json(*json)), {});
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(testing::difference(*back, tree), "");
  EXPECT_FALSE(structure_to_json(Tree::list({tree})));
}

TEST(Structure, RefusesTreesThatItCannotHold) {
  const struct {
    Tree tree;
    const char* reason;
    const char* place;
  } cases[] = {
      {Tree::dict({{"a", Tree(Value("\xff"))}}), "value/not-utf8", "'a'"},
      {Tree::dict({{"x", Tree::dict({{"\xff", array()}})}}), "structure/not-utf8", "'x'"},
      {Tree::list({Tree::custom("\xff", {})}), "structure/not-utf8", "'0'"},
      {Tree::dict({{0, array()}, {"0", array()}}), "keypath/collision", "'0'"},
      {Tree::dict({{std::string(300, 'a'), array()}}), "keypath/part-too-long", "the root"},
  };
  for (const auto& c : cases) {
    const auto json = structure_to_json(c.tree);
    ASSERT_FALSE(json) << c.reason;
    EXPECT_EQ(json.error().reason(), c.reason);
    EXPECT_EQ(json.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(json.error().to_string(), HasSubstr(c.place));
  }
}

std::string deep_lists(int levels) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += R"({"list":[)";
  text += "null";
  for (int i = 0; i < levels; ++i) text += "]}";
  return text;
}

TEST(Structure, RefusesDamages) {
  const struct {
    const char* damage;
    std::string json;
    const char* reason;
  } cases[] = {
      {"number for a node", "7", "structure/bad-node"},
      {"true for a node", "true", "structure/bad-node"},
      {"another word", R"("Array")", "structure/bad-node"},
      {"array for a node", "[]", "structure/bad-node"},
      {"static part is no text", R"({"custom":[],"class":"a:B","static":[]})",
       "structure/bad-node"},
      {"no kind", "{}", "structure/bad-node"},
      {"unknown kind", R"({"set":[]})", "structure/bad-node"},
      {"two kinds", R"({"list":[],"tuple":[]})", "structure/bad-node"},
      {"value and kind", R"({"value":{"type":"none"},"list":[]})", "structure/bad-node"},
      {"children are an object", R"({"dict":{"a":"array"}})", "structure/bad-node"},
      {"children are null", R"({"list":null})", "structure/bad-node"},
      {"child without key", R"({"dict":["array"]})", "structure/bad-node"},
      {"child of three", R"({"dict":[["a","array","array"]]})", "structure/bad-node"},
      {"no class", R"({"custom":[]})", "structure/bad-node"},
      {"class is no text", R"({"namedtuple":[],"class":3})", "structure/bad-node"},
      {"damage below", R"({"list":["array",{"dict":[["a",{"tuple":[5]}]]}]})",
       "structure/bad-node"},
      {"key is null", R"({"dict":[[null,"array"]]})", "structure/bad-key"},
      {"key is a fraction", R"({"dict":[[1.5,"array"]]})", "structure/bad-key"},
      {"key is 2.0", R"({"dict":[[2.0,"array"]]})", "structure/bad-key"},
      {"key beyond 64 bits", R"({"dict":[[9223372036854775808,"array"]]})", "structure/bad-key"},
      {"not sorted", R"({"dict":[["b","array"],["a","array"]]})", "structure/bad-key"},
      {"number after text", R"({"dict":[["a","array"],[1,"array"]]})", "structure/bad-key"},
      {"one key twice", R"({"dict":[["a","array"],["a","array"]]})", "structure/bad-key"},
      {"0 and text 0", R"({"dict":[[0,"array"],["0","array"]]})", "structure/bad-key"},
      {"0 and text 0, custom", R"({"custom":[["0","array"],[0,"array"]],"class":""})",
       "structure/bad-key"},
      {"field twice", R"({"namedtuple":[["b",null],["a",null],["b",null]],"class":""})",
       "structure/bad-key"},
      {"bad value", R"({"list":[{"value":{"type":"int","value":"x"}}]})", "value/bad-json"},
      {"too deep", deep_lists(kMaxTreeDepth + 1), "structure/too-deep"},
  };
  for (const auto& c : cases) {
    const Json json = parsed(c.json);
    const auto tree = tree_from_structure(json, blank_arrays(2));
    ASSERT_FALSE(tree) << c.damage;
    EXPECT_EQ(tree.error().reason(), c.reason) << c.damage;
    EXPECT_EQ(tree.error().code(), Code::kCorrupt) << c.damage;
    const auto leaves = structure_leaves(json);
    ASSERT_FALSE(leaves) << c.damage;
    EXPECT_EQ(leaves.error().reason(), c.reason) << c.damage;
  }
  EXPECT_TRUE(structure_leaves(parsed(deep_lists(kMaxTreeDepth))));
}

TEST(Structure, NamesThePlaceOfADamage) {
  const auto leaves = structure_leaves(parsed(R"({"dict":[["a.b",{"list":[null,5]}]]})"));
  ASSERT_FALSE(leaves);
  EXPECT_THAT(leaves.error().to_string(), HasSubstr("'a%2Eb.1'"));
  const std::string long_key(5000, 'x');
  const auto cut = structure_leaves(parsed(R"({"dict":[[")" + long_key + R"(",5]]})"));
  ASSERT_FALSE(cut);
  EXPECT_LT(cut.error().to_string().size(), 1000U);
}

TEST(Structure, WantsAsManyArraysAsItHas) {
  const Json json = parsed(R"({"list":["array",null,"array"]})");
  EXPECT_TRUE(tree_from_structure(json, blank_arrays(2)));
  EXPECT_EQ(tree_from_structure(json, blank_arrays(1)).error().reason(),
            "structure/too-few-arrays");
  EXPECT_EQ(tree_from_structure(json, blank_arrays(3)).error().reason(),
            "structure/too-many-arrays");
}

TEST(Structure, IgnoresMembersOfLaterVersions) {
  const auto leaves = structure_leaves(parsed(R"({"note":"x","list":["array"],"class":7})"));
  ASSERT_TRUE(leaves) << leaves.error().to_string();
  EXPECT_EQ(leaves->arrays.size(), 1U);
}

}  // namespace
}  // namespace cairn
