// SPDX-License-Identifier: Apache-2.0
// Names that are different for us and one for the file system.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/testing/folding_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;

class OneName : public ::testing::Test {
 protected:
  Array array() { return testing::random_array(random_, DType::kFloat32, {5}); }
  /// What came back is what was saved, or the save says why not and leaves nothing.
  void expect_kept_or_refused(const Tree& tree, const SaveOptions& options, bool kept) {
    const auto saved = save_tree(tree, "/c", options, runtime_, "model");
    if (!kept) {
      EXPECT_EQ(reason(saved), "layout/one-name");
      EXPECT_FALSE(load("/c", {}, runtime_));
      return;
    }
    ASSERT_TRUE(saved) << saved.error().to_string();
    EXPECT_EQ(testing::difference(must(load("/c", {}, runtime_)).tree, tree), "");
  }

  testing::Random random_{1};
  testing::LossyFileSystem disk_;
  std::unique_ptr<storage::FileSystem> folding_ = testing::fold_names(disk_);
  Runtime runtime_{{.threads = 1, .file_system = folding_.get()}};
};

TEST_F(OneName, OfTwoLeavesIsRefused) {
  expect_kept_or_refused(Tree::dict({{"a", array()}, {"A", array()}}), {}, false);
}

TEST_F(OneName, OfTwoContainersIsRefused) {
  const Tree tree = Tree::dict(
      {{"Layer", Tree::dict({{"a", array()}})}, {"layer", Tree::dict({{"b", array()}})}});
  expect_kept_or_refused(tree, {}, false);
}

TEST_F(OneName, OfOneLeafIsNoMatter) {
  expect_kept_or_refused(Tree::dict({{"Layer", Tree::dict({{"W", array()}})}}), {}, true);
}

TEST_F(OneName, InsideOneFileIsNoMatter) {
  expect_kept_or_refused(Tree::dict({{"a", array()}, {"A", array()}}),
                         {.layout = std::string(kSafetensorsLayout)}, true);
}

}  // namespace
}  // namespace cairn
