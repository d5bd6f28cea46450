// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/visit.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/testing/random_tree.h"
#include "cairn/tree/flatten.h"

namespace net {

struct Layer {
  cairn::Array kernel;
  bool frozen = false;
};
template <typename Visitor>
void cairn_visit(Visitor& v, Layer& layer) {
  v("kernel", layer.kernel);
  v("frozen", layer.frozen);
}

struct Everything {
  cairn::ShardedArray sharded = cairn::ShardedArray(cairn::Array());
  std::int8_t small = 0;
  std::uint16_t port = 0;
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  float rate = 0;
  double loss = 0;
  std::complex<double> phase;
  std::string name;
  cairn::Bytes state;
  cairn::Value any;
  std::vector<Layer> layers;
  std::vector<bool> flags;
  std::vector<cairn::ShardedArray> moments;
  std::map<std::string, std::vector<int>> tables;
};
template <typename Visitor>
void cairn_visit(Visitor& v, Everything& e) {
  v("sharded", e.sharded);
  v("small", e.small);
  v("port", e.port);
  v("step", e.step);
  v("seed", e.seed);
  v("rate", e.rate);
  v("loss", e.loss);
  v("phase", e.phase);
  v("name", e.name);
  v("state", e.state);
  v("any", e.any);
  v("layers", e.layers);
  v("flags", e.flags);
  v("moments", e.moments);
  v("tables", e.tables);
}

struct Small {
  std::int8_t n = 0;
};
template <typename Visitor>
void cairn_visit(Visitor& v, Small& small) {
  v("n", small.n);
}

}  // namespace net

namespace cairn {
namespace {

using ::testing::HasSubstr;

Tree number(int value) { return Tree(Value(Integer(value))); }

net::Everything filled() {
  testing::Random random(4);
  const auto array = [&random] { return testing::random_array(random, DType::kBfloat16, {2, 3}); };
  net::Everything e;
  e.sharded = ShardedArray(array());
  e.small = -128;
  e.port = 65535;
  e.step = std::numeric_limits<std::int64_t>::min();
  e.seed = std::numeric_limits<std::uint64_t>::max();
  e.rate = 0.1F;
  e.loss = std::numeric_limits<double>::quiet_NaN();
  e.phase = {1, -0.0};
  e.name = "run \xc3\xa9";
  e.state = Bytes{std::string("\0\xff", 2)};
  e.any = *Integer::parse("123456789012345678901234567890");
  e.layers = {{array(), true}, {array(), false}};
  e.flags = {true, false, true};
  e.moments = {ShardedArray(array())};
  e.tables = {{"a.b", {1, 2}}, {"", {}}};
  return e;
}

TEST(Visit, MakesAttributesListsAndDicts) {
  const Tree tree = to_tree(filled());
  EXPECT_EQ(tree.kind(), TreeKind::kAttributes);
  EXPECT_EQ(tree.find("layers")->kind(), TreeKind::kList);
  EXPECT_EQ(tree.find("tables")->kind(), TreeKind::kDict);
  const auto leaves = flatten(tree);
  ASSERT_TRUE(leaves);
  std::vector<std::string> paths;
  for (const NamedLeaf& named : *leaves) paths.push_back(named.path.text());
  EXPECT_THAT(paths, ::testing::IsSupersetOf({"step", "layers.1.kernel", "tables.a%2Eb.0"}));
}

TEST(Visit, GivesEveryKindOfMemberBack) {
  const Tree tree = to_tree(filled());
  net::Everything back;
  const auto read = from_tree(tree, back);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(testing::difference(to_tree(back), tree), "");
  EXPECT_EQ(back.step, filled().step);
  EXPECT_EQ(back.rate, 0.1F);
  EXPECT_EQ(back.flags, filled().flags);
  EXPECT_EQ(back.tables, filled().tables);
}

TEST(Visit, ReadsTheNestedDictsOfACheckpointWithoutStructure) {
  net::Everything original = filled();
  original.tables.erase("");  // an empty list leaves no leaf: only a structure can tell
  const Tree tree = to_tree(original);
  const auto nested = nest(*flatten(tree));
  ASSERT_TRUE(nested);
  net::Everything back;
  const auto read = from_tree(*nested, back);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(testing::difference(to_tree(back), tree), "");
}

TEST(Visit, TakesNoneAsAValue) {
  Value value = Integer(3);
  ASSERT_TRUE(from_tree(Tree::none(), value));
  EXPECT_EQ(value, Value());
}

Tree layer(Tree kernel, Tree frozen) {
  return Tree::dict({{"kernel", std::move(kernel)}, {"frozen", std::move(frozen)}});
}

TEST(Visit, SaysWhichMemberIsWrongAndHow) {
  const Tree good = Tree(Array());
  const Tree yes = Tree(Value(true));
  const struct {
    Tree tree;
    const char* reason;
    const char* text;
  } cases[] = {
      {Tree::dict({{"kernel", good}}), "tree/missing-member",
       "'0.x' has no member 'frozen'; it has: kernel"},
      {Tree::dict(), "tree/missing-member", "it has: nothing"},
      {layer(number(1), yes), "tree/type-mismatch",
       "'0.x.kernel': expected a whole array, found int"},
      {layer(good, good), "tree/type-mismatch",
       "'0.x.frozen': expected bool, found array float32 (0,)"},
      {layer(good, number(1)), "tree/type-mismatch", "expected bool, found int"},
      {layer(good, Tree::tuple()), "tree/type-mismatch", "found tuple of 0"},
      {layer(good, Tree::custom("m:C", {})), "tree/type-mismatch", "found m:C with 0 members"},
      {Tree::list({good, yes}), "tree/type-mismatch",
       "'0.x': expected a struct or dict, found list of 2"},
      {good, "tree/type-mismatch", "expected a struct or dict"},
      {Tree::none(), "tree/type-mismatch", "found None"},
      {Tree::dict({{"kernel", good}, {"frozen", yes}, {"a.b", number(1)}}),
       "tree/unexpected-member", "'0.x.a%2Eb', int"},
      {Tree::dict({{"kernel", good}, {"frozen", yes}, {0, number(1)}}), "tree/unexpected-member",
       "'0.x.0'"},
  };
  for (const auto& c : cases) {
    std::vector<std::map<std::string, net::Layer>> target;
    const auto read = from_tree(Tree::list({Tree::dict({{"x", c.tree}})}), target);
    ASSERT_FALSE(read) << c.text;
    EXPECT_EQ(read.error().reason(), c.reason) << c.text;
    EXPECT_EQ(read.error().code(), Code::kFailedPrecondition);
    EXPECT_THAT(read.error().to_string(), HasSubstr(c.text));
    EXPECT_TRUE(target.empty());
  }
}

TEST(Visit, RefusesSequencesAndMapsOfAnotherKind) {
  const auto reason = [](const Tree& tree, auto target) -> std::string {
    const auto read = from_tree(tree, target);
    return std::string(read ? "" : read.error().reason());
  };
  const std::vector<int> list;
  const std::map<std::string, int> map;
  EXPECT_EQ(reason(Tree::dict({{"1", number(1)}, {0, number(2)}}), list), "");
  EXPECT_EQ(reason(Tree::dict({{"0", number(1)}, {0, number(2)}}), list), "tree/type-mismatch");
  EXPECT_EQ(reason(Tree::dict({{"00", number(1)}}), list), "tree/type-mismatch");
  EXPECT_EQ(reason(Tree::dict({{1, number(1)}}), list), "tree/type-mismatch");
  EXPECT_EQ(reason(number(1), list), "tree/type-mismatch");
  EXPECT_EQ(reason(Tree::none(), list), "tree/type-mismatch");
  EXPECT_EQ(reason(Tree::list({number(1)}), map), "tree/type-mismatch");
  EXPECT_EQ(reason(number(1), map), "tree/type-mismatch");
}

TEST(Visit, RefusesNumbersThatTheMemberCannotHold) {
  for (const int fits : {-128, 0, 127}) {
    net::Small small;
    ASSERT_TRUE(from_tree(Tree::dict({{"n", number(fits)}}), small));
    EXPECT_EQ(small.n, fits);
  }
  for (const int wide : {-129, 128, 1 << 30}) {
    net::Small small;
    const auto read = from_tree(Tree::dict({{"n", number(wide)}}), small);
    ASSERT_FALSE(read) << wide;
    EXPECT_EQ(read.error().reason(), "tree/out-of-range");
    EXPECT_THAT(read.error().to_string(), HasSubstr("'n'"));
    EXPECT_THAT(read.error().to_string(), HasSubstr("-128 to 127"));
    EXPECT_THAT(read.error().to_string(), HasSubstr(std::to_string(wide)));
  }
  std::uint64_t natural = 0;
  EXPECT_EQ(from_tree(number(-1), natural).error().reason(), "tree/out-of-range");
  std::int64_t whole = 0;
  EXPECT_EQ(from_tree(Tree(Value(*Integer::parse("9223372036854775808"))), whole).error().reason(),
            "tree/out-of-range");
}

TEST(Visit, NarrowsFloatsOnlyWithoutLoss) {
  const auto read = [](double value) {
    float narrow = 7;
    return std::pair(from_tree(Tree(Value(value)), narrow), narrow);
  };
  for (const double exact : {0.5, -0.0, 3.4028234663852886e38, HUGE_VAL, -HUGE_VAL}) {
    const auto [result, narrow] = read(exact);
    ASSERT_TRUE(result) << exact;
    EXPECT_EQ(double{narrow}, exact);
    EXPECT_EQ(std::signbit(narrow), std::signbit(exact));
  }
  EXPECT_TRUE(std::isnan(read(NAN).second));
  for (const double lossy : {0.1, 1e300, -1e300, 1e-300, 16777217.0}) {
    const auto [result, narrow] = read(lossy);
    ASSERT_FALSE(result) << lossy;
    EXPECT_EQ(result.error().reason(), "tree/out-of-range");
    EXPECT_EQ(narrow, 7.0F);
  }
}

TEST(Visit, WantsWholeArraysForPlainOnes) {
  const std::vector<Placement> placements = {{Box{{0}, {2}}, {0, 0}}, {Box{{2}, {4}}, {1, 1}}};
  const auto half = Array::zeros(DType::kInt32, {2});
  ASSERT_TRUE(half);
  const auto sharded = ShardedArray::make(DType::kInt32, {4}, *Sharding::of_boxes({4}, placements),
                                          {Shard{0, *half}});
  ASSERT_TRUE(sharded) << sharded.error().to_string();
  Array plain;
  const auto refused = from_tree(Tree(*sharded), plain);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("sharded array int32 (4"));
  ShardedArray target{Array()};
  ASSERT_TRUE(from_tree(Tree(*sharded), target));
  EXPECT_EQ(target.sharding().device_count(), 2U);
}

}  // namespace
}  // namespace cairn
