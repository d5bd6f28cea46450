// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/flatten.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tree leaf(int number = 1) { return Tree(Value(Integer(number))); }

std::vector<std::string> paths_of(const Tree& tree) {
  const auto leaves = flatten(tree);
  EXPECT_TRUE(leaves) << leaves.error().to_string();
  std::vector<std::string> paths;
  for (const NamedLeaf& named : *leaves) paths.push_back(named.path.text());
  return paths;
}

// A chain of `levels` dicts around a leaf.
Tree chain(int levels) {
  Tree tree = leaf();
  for (int i = 0; i < levels; ++i) {
    Tree::Children children;
    children.emplace_back("k", std::move(tree));
    tree = Tree::dict(std::move(children));
  }
  return tree;
}

// The expected paths were printed by JAX 0.10.2 (tree_flatten_with_path, through the reference
// system's leaf_key_paths) for the same trees; only the empty key is spelled "%" here.
TEST(Flatten, GivesLeavesInTheOrderOfJax) {
  const struct {
    const char* what;
    Tree tree;
    std::vector<std::string> paths;
  } cases[] = {
      {"nested, with empty containers",
       Tree::dict(
           {{"b", Tree::list({leaf(), Tree::dict({{"z", leaf()}, {"a", leaf()}})})},
            {"a", Tree::tuple({leaf(), Tree::none(), Tree::tuple(), Tree::dict(), Tree::list()})},
            {"B", leaf()}}),
       {"B", "a.0", "b.0", "b.1.a", "b.1.z"}},
      {"integer keys",
       Tree::dict({{10, leaf()}, {2, Tree::dict({{"x", leaf()}})}, {-1, leaf()}, {0, leaf()}}),
       {"-1", "0", "2.x", "10"}},
      {"text keys",
       Tree::dict({{"b", leaf()},
                   {"a", leaf()},
                   {"B", leaf()},
                   {"10", leaf()},
                   {"2", leaf()},
                   {"", leaf()},
                   {"\xc3\xa9", leaf()},
                   {"\xf0\x9f\x98\x80", leaf()},
                   {"\xef\xbf\xbf", leaf()},
                   {" ", leaf()},
                   {"_", leaf()},
                   {"~", leaf()}}),
       {"%", " ", "10", "2", "B", "_", "a", "b", "~", "\xc3\xa9", "\xef\xbf\xbf",
        "\xf0\x9f\x98\x80"}},
      {"named tuple",
       Tree::dict({{"opt", Tree::named_tuple("NT", {{"nu", Tree::dict({{"k", leaf()}})},
                                                    {"mu", Tree::list({leaf(), leaf()})},
                                                    {"count", leaf()}})}}),
       {"opt.nu.k", "opt.mu.0", "opt.mu.1", "opt.count"}},
      {"dataclass",
       Tree::dict(
           {{"m", Tree::attributes("DC", {{"weight", leaf()}, {"bias", Tree::list({leaf()})}})}}),
       {"m.weight", "m.bias.0"}},
      {"one leaf", leaf(), {""}},
      {"None", Tree::none(), {}},
  };
  for (const auto& c : cases) EXPECT_EQ(paths_of(c.tree), c.paths) << c.what;
}

TEST(Flatten, NumbersSequencesByPlaceWhateverTheirKeys) {
  Tree list = Tree::list({leaf(), leaf(), leaf()});
  list.children().erase(list.children().begin());
  EXPECT_THAT(paths_of(list), ElementsAre("0", "1"));
}

TEST(Flatten, TellsOddKeysApart) {
  const Tree tree = Tree::dict({{"a.b", leaf()},
                                {"a", Tree::dict({{"b", leaf()}, {"", leaf()}})},
                                {"a/b", leaf()},
                                {"..", leaf()},
                                {"a%2Eb", leaf()}});
  EXPECT_THAT(paths_of(tree), ElementsAre("%2E%2E", "a.%", "a.b", "a%252Eb", "a%2Eb", "a%2Fb"));
}

TEST(Flatten, RefusesWhatWouldLoseALeaf) {
  const auto error_of = [](const Tree& tree) {
    const auto leaves = flatten(tree);
    return leaves ? Error(Code::kInternal, "none", "accepted") : leaves.error();
  };
  const Tree mixed = Tree::dict({{0, leaf()}, {"0", Tree::list()}, {"a", leaf()}});
  const Error collision = error_of(Tree::dict({{"x", Tree::list({mixed})}}));
  EXPECT_EQ(collision.reason(), "keypath/collision");
  EXPECT_EQ(collision.code(), Code::kInvalidArgument);
  EXPECT_THAT(collision.to_string(), HasSubstr("integer key 0"));
  EXPECT_THAT(collision.to_string(), HasSubstr("text key \"0\""));
  EXPECT_THAT(collision.to_string(), HasSubstr("'x.0.0'"));
  EXPECT_EQ(error_of(Tree::attributes("", {{"a", leaf()}, {"a", leaf()}})).reason(),
            "keypath/collision");
  const Error too_long =
      error_of(Tree::dict({{"p", Tree::dict({{std::string(300, 'x'), leaf()}})}}));
  EXPECT_EQ(too_long.reason(), "keypath/part-too-long");
  EXPECT_THAT(too_long.to_string(), HasSubstr("'p'"));
}

TEST(Flatten, TakesTreesUpToTheGreatestDepth) {
  ASSERT_TRUE(flatten(chain(kMaxTreeDepth)));
  EXPECT_EQ(flatten(chain(kMaxTreeDepth))->front().path.parts().size(), std::size_t{kMaxTreeDepth});
  const auto deeper = flatten(chain(kMaxTreeDepth + 1));
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().reason(), "tree/too-deep");
}

TEST(WithLeaves, ReplacesThemInTheOrderOfFlatten) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Tree tree = testing::random_tree(seed);
    const auto leaves = flatten(tree);
    ASSERT_TRUE(leaves) << leaves.error().to_string();
    const auto blank = map_leaves(tree, [](const KeyPath&, const Leaf&) { return Leaf(); });
    ASSERT_TRUE(blank);
    std::vector<Leaf> values;
    for (const NamedLeaf& named : *leaves) values.push_back(named.leaf);
    const auto again = with_leaves(*blank, values);
    ASSERT_TRUE(again);
    EXPECT_EQ(testing::difference(*again, tree), "") << "seed " << seed;
  }
}

TEST(WithLeaves, RefusesAnotherNumberOfLeaves) {
  const Tree tree = Tree::list({leaf(), leaf()});
  for (const std::size_t count : {0U, 1U, 3U}) {
    const auto wrong = with_leaves(tree, std::vector<Leaf>(count));
    ASSERT_FALSE(wrong) << count;
    EXPECT_EQ(wrong.error().reason(), "tree/leaf-count");
  }
}

TEST(MapLeaves, StopsAtTheFirstError) {
  const Tree tree = Tree::dict({{"c", leaf()}, {"a", leaf()}, {"b", leaf()}});
  std::vector<std::string> seen;
  const auto result = map_leaves(tree, [&seen](const KeyPath& path, const Leaf&) -> Result<Leaf> {
    seen.push_back(path.text());
    if (path.text() == "b") return Error(Code::kInternal, "x/y", "no");
    return Leaf();
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason(), "x/y");
  EXPECT_THAT(seen, ElementsAre("a", "b"));
}

TEST(Nest, MakesDictsOfAnyPathsInAnyOrder) {
  testing::Random random(3);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto leaves = *flatten(testing::random_tree(seed));
    if (leaves.empty()) continue;
    std::shuffle(leaves.begin(), leaves.end(), random);
    const auto nested = nest(leaves);
    ASSERT_TRUE(nested) << nested.error().to_string();
    auto again = *flatten(*nested);
    const auto by_path = [](const NamedLeaf& a, const NamedLeaf& b) { return a.path < b.path; };
    std::sort(leaves.begin(), leaves.end(), by_path);
    std::sort(again.begin(), again.end(), by_path);
    ASSERT_EQ(again.size(), leaves.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      EXPECT_EQ(again[i].path, leaves[i].path);
      EXPECT_EQ(testing::difference(Tree(again[i].leaf), Tree(leaves[i].leaf)), "");
    }
  }
  EXPECT_EQ(testing::difference(*nest({}), Tree::dict()), "");
}

TEST(Nest, RefusesALeafWhereAnotherHasChildren) {
  const auto reason = [](std::vector<std::vector<std::string>> paths) -> std::string {
    std::vector<NamedLeaf> leaves;
    for (auto& parts : paths) leaves.push_back({KeyPath(std::move(parts)), Leaf()});
    const auto tree = nest(std::move(leaves));
    return std::string(tree ? "" : tree.error().reason());
  };
  EXPECT_EQ(reason({{"a", "b"}, {"a"}}), "keypath/collision");
  EXPECT_EQ(reason({{"a"}, {"a!"}, {"a", "b", "c"}}), "keypath/collision");
  EXPECT_EQ(reason({{"a"}, {"a"}}), "keypath/collision");
  EXPECT_EQ(reason({{}, {"a"}}), "keypath/collision");
  EXPECT_EQ(reason({{"a"}, {"ab"}, {"b", "a"}}), "");
  EXPECT_EQ(reason({std::vector<std::string>(kMaxTreeDepth, "k")}), "");
  EXPECT_EQ(reason({std::vector<std::string>(kMaxTreeDepth + 1, "k")}), "tree/too-deep");
}

}  // namespace
}  // namespace cairn
