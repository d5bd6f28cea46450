// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/tree.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Tree, IsALeafOfWhatItIsMadeFrom) {
  EXPECT_TRUE(is_array_like(Tree(Array()).leaf()));
  EXPECT_TRUE(is_array_like(Tree(ShardedArray(Array())).leaf()));
  EXPECT_FALSE(is_array_like(Tree(Value(Integer(1))).leaf()));
  EXPECT_EQ(Tree(Value(Integer(1))).kind(), TreeKind::kLeaf);
}

TEST(Tree, NumbersTheChildrenOfSequences) {
  const Tree list = Tree::list({Tree(Value(Integer(5))), Tree(Value(Integer(6)))});
  EXPECT_EQ(list.children()[1].first, Key(1));
  const Tree tuple = Tree::node(TreeKind::kTuple,
                                {{"x", Tree(Value(Integer(5)))}, {"x", Tree(Value(Integer(6)))}});
  EXPECT_EQ(tuple.kind(), TreeKind::kTuple);
  EXPECT_EQ(tuple.children()[1].first, Key(1));
}

TEST(Tree, FindsChildrenByKeyAndSequencesByPlace) {
  Tree dict = Tree::dict({{"a", Tree(Value(Integer(1)))}, {0, Tree(Value(Integer(2)))}});
  ASSERT_NE(dict.find(0), nullptr);
  EXPECT_EQ(std::get<Value>(dict.find(0)->leaf()), Value(Integer(2)));
  EXPECT_EQ(dict.find("0"), nullptr);
  Tree list = Tree::list({Tree(Value(Integer(5))), Tree(Value(Integer(6)))});
  list.children().erase(list.children().begin());
  ASSERT_NE(list.find(0), nullptr);
  EXPECT_EQ(std::get<Value>(list.find(0)->leaf()), Value(Integer(6)));
  for (const Key& key : {Key(1), Key(-1), Key("0")}) EXPECT_EQ(list.find(key), nullptr);
  EXPECT_EQ(Tree::none().find(0), nullptr);
}

TEST(Tree, SetsAddOrReplace) {
  Tree dict = Tree::dict();
  dict.set("a", Tree(Value(Integer(1))));
  dict.set("b", Tree(Value(Integer(2))));
  dict.set("a", Tree(Value(Integer(3))));
  ASSERT_EQ(dict.children().size(), 2U);
  EXPECT_EQ(std::get<Value>(dict.find("a")->leaf()), Value(Integer(3)));
}

TEST(Tree, KeepsClassNamesWhereThereAreSome) {
  EXPECT_EQ(Tree::named_tuple("optax:ScaleByAdamState", {}).class_name(), "optax:ScaleByAdamState");
  EXPECT_EQ(Tree::attributes("m:C", {}).kind(), TreeKind::kAttributes);
  EXPECT_EQ(Tree::custom("m:C", {}).kind(), TreeKind::kCustom);
}

}  // namespace
}  // namespace cairn
