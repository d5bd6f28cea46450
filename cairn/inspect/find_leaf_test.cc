// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/find_leaf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/layout/open_checkpoint.h"
#include "cairn/save/save.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using testing::must;

class FindLeaf : public ::testing::Test {
 protected:
  FindLeaf() {
    const Array w = must(Array::zeros(DType::kFloat32, {2}));
    const Tree tree = Tree::dict({{"a", Tree::dict({{"w", w}})}, {"n", Value(Integer(3))}});
    must(save_checkpoint({{"one", tree}, {"two", Tree::dict({{"a", Tree::dict({{"w", w}})}})}},
                         dir_ / "c", {}, runtime_));
    opened_ = must(open_checkpoint(dir_ / "c", runtime_));
  }

  Error refused(const std::string& key, const std::optional<std::string>& prefix = {}) const {
    return find_leaf(opened_, key, prefix).error();
  }

  Runtime runtime_;
  testing::TempDir dir_;
  Checkpoint opened_;
};

TEST_F(FindLeaf, TakesKeysWithAndWithoutThePrefix) {
  EXPECT_EQ(must(find_leaf(opened_, "two.a.w", {})).name(), "a.w of prefix two");
  EXPECT_EQ(must(find_leaf(opened_, "a.w", "one")).name(), "a.w of prefix one");
  EXPECT_EQ(must(find_leaf(opened_, "n", {})).value, &opened_.prefixes[0].values[0].second);
}

TEST_F(FindLeaf, SaysWhatTheKeyCouldMean) {
  EXPECT_EQ(refused("a.w").reason(), "load/key-ambiguous");
  EXPECT_THAT(refused("a.w").message(), HasSubstr("a.w of prefix one, a.w of prefix two"));
  EXPECT_EQ(refused("x").reason(), "load/key-missing");
  EXPECT_THAT(refused("x").message(), HasSubstr("`cairn show` lists all"));
  EXPECT_THAT(refused("a", "two").message(), HasSubstr("it is a subtree: 'a.w' is there"));
}

}  // namespace
}  // namespace cairn
