// SPDX-License-Identifier: Apache-2.0
// Checkpoints of ours whose index a client rewrote after the save.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/base/json.h"
#include "cairn/load/load.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/names.h"
#include "cairn/save/save.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::must;

constexpr const char* kRewritten = "tensorstore_index.json was rewritten";

class RewrittenIndex : public ::testing::Test {
 protected:
  RewrittenIndex() { must(save_tree(tree_, path_, {}, runtime_, "model")); }

  Array array(const Shape& shape) { return testing::random_array(random_, DType::kFloat32, shape); }

  /// What a client puts in the place of our list.
  void rewrite(const std::vector<IndexedArray>& list) {
    const std::string index = path_ + "/" + std::string(kIndexName);
    const auto merged =
        must(merge_eformer_index(testing::read_file(index), {{"model", index_list(list)}}));
    testing::write_file(index, *merged);
  }

  /// An array of the client's own at this place.
  void put(const std::string& directory, const Array& content) {
    testing::TempDir elsewhere;
    must(save_tree(Tree::dict({{"a", content}}), elsewhere / "c", {}, runtime_, "x"));
    std::filesystem::remove_all(path_ + "/" + directory);
    std::filesystem::create_directories(path_ + "/" + directory);
    std::filesystem::copy(elsewhere / "c/x/a", path_ + "/" + directory,
                          std::filesystem::copy_options::recursive);
  }

  Loaded loaded() { return must(load(path_, {.prefix = "model"}, runtime_)); }

  testing::TempDir dir_;
  const std::string path_ = dir_ / "c";
  Runtime runtime_;
  testing::Random random_{41};
  const Array w_ = array({4, 3});
  const Array b_ = array({5});
  const Tree tree_ =
      Tree::dict({{"w", w_}, {"rest", Tree::list({b_})}, {"step", Value(Integer(7))}});
  const std::vector<IndexedArray> list_{{"model/rest/0", {5}, "float32"},
                                        {"model/w", {4, 3}, "float32"}};
};

TEST_F(RewrittenIndex, SaysNothingNewWithTheSameArrays) {
  rewrite(list_);
  const Loaded result = loaded();
  EXPECT_EQ(testing::difference(result.tree, tree_), "");
  EXPECT_THAT(result.report.notes, IsEmpty());
  EXPECT_THAT(result.report.unchecked, IsEmpty());
}

TEST_F(RewrittenIndex, AddsAndTakesArrays) {
  const Array added = array({2, 2});
  put("model/more", added);
  put("outside/far", b_);
  rewrite({list_[1], {"model/more", {2, 2}, "float32"}, {"outside/far", {5}, "float32"}});
  const Loaded result = loaded();
  EXPECT_EQ(testing::difference(result.tree, Tree::dict({{"w", w_},
                                                         {"more", added},
                                                         {"outside", Tree::dict({{"far", b_}})},
                                                         {"step", Value(Integer(7))}})),
            "");
  EXPECT_THAT(result.report.notes, ElementsAre(HasSubstr(kRewritten)));
  EXPECT_THAT(result.report.unchecked, ElementsAre("more", "outside.far"));
}

TEST_F(RewrittenIndex, ChangesAnArrayAndLeavesTheStructure) {
  const Array other = array({7});
  put("model/rest/0", other);
  rewrite({{"model/rest/0", {7}, "float32"}, list_[1]});
  const Loaded result = loaded();
  EXPECT_EQ(
      testing::difference(
          result.tree,
          Tree::dict({{"w", w_}, {"rest", Tree::list({other})}, {"step", Value(Integer(7))}})),
      "");
  EXPECT_THAT(result.report.unchecked, ElementsAre("rest.0"));
}

TEST_F(RewrittenIndex, StillFindsDamageInWhatIsAsItWasSaved) {
  rewrite({list_[1]});
  testing::write_file(path_ + "/model/w/0.0", std::string(48, 'x'));
  EXPECT_EQ(testing::reason(load(path_, {.prefix = "model"}, runtime_)), "load/checksum");
}

// The index of one save is never held against the manifest of another.
class Index : public ::testing::TestWithParam<const char*> {};

TEST_P(Index, OfASaveThatIsNotFinishedIsNotTakenForAClients) {
  testing::LossyFileSystem base;
  testing::Random random(42);
  const auto save = [&](storage::FileSystem& fs, const char* key) {
    testing::ManualClock clock;
    Runtime runtime({.threads = 1, .file_system = &fs, .clock = &clock});
    return save_tree(Tree::dict({{key, testing::random_array(random, DType::kInt8, {3})}}),
                     "/run/c", {.overwrite = true}, runtime, GetParam());
  };
  const auto expect_no_client = [&](storage::FileSystem& fs, std::size_t n) {
    Runtime runtime({.threads = 1, .file_system = &fs});
    const auto loaded = load("/run/c", {}, runtime);
    ASSERT_TRUE(loaded) << n << ": " << loaded.error().to_string();
    EXPECT_THAT(loaded->report.notes, Not(Contains(HasSubstr(kRewritten)))) << n;
  };
  must(save(base, "a"));
  for (std::size_t n = 0;; ++n) {
    const auto disk = base.after_kill();
    disk->crash_after(n);
    if (save(*disk, "b")) break;
    expect_no_client(*disk->after_kill(), n);
  }
  bool reached = true;
  for (std::size_t n = 0; reached; ++n) {
    const auto disk = base.after_kill();
    reached = false;
    const auto reading = testing::interpose(*disk, [&](std::size_t operation) {
      if (operation != n) return;
      reached = true;
      EXPECT_TRUE(save(*disk, "b"));
    });
    expect_no_client(*reading, n);
  }
}

INSTANTIATE_TEST_SUITE_P(Prefixes, Index, ::testing::Values("model", ""));

}  // namespace
}  // namespace cairn
