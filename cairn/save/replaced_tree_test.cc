// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/replaced_tree.h"

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/inspect/convert.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/save/save_async.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::must;
using ::testing::Not;
using testing::reason;

Array array(const Shape& shape, DType dtype = DType::kFloat32) {
  testing::Random random(7);
  return testing::random_array(random, dtype, shape);
}

Tree weights() {
  return Tree::dict({{"w", array({4, 3})},
                     {"layers", Tree::list({Tree(array({2})), Tree(array({5}))})},
                     {"rate", Value(0.5)}});
}

Tree others() { return Tree::dict({{"w", array({4, 3})}, {"bias", array({2})}}); }

/// Every file below a directory, but for the lock.
std::map<std::string, std::string> files_in(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file() && entry.path().filename() != ".cairn-lock")
      files[entry.path()] = testing::read_file(entry.path());
  }
  return files;
}

class ReplacedTree : public ::testing::Test {
 protected:
  Result<SaveReport> save(const Tree& tree, const std::string& prefix = "",
                          const SaveOptions& options = {}) {
    return save_tree(tree, path_, options, runtime_, prefix);
  }

  /// The save is refused, says this, and changes nothing.
  void expect_refused(const Tree& tree, const std::string& prefix, const SaveOptions& options,
                      const ::testing::Matcher<const std::string&>& says) {
    const auto before = files_in(dir_.path());
    const auto refused = save(tree, prefix, options);
    EXPECT_EQ(reason(refused), "save/other-tree");
    if (refused) return;
    EXPECT_EQ(refused.error().code(), Code::kAlreadyExists);
    EXPECT_THAT(refused.error().message(), AllOf(HasSubstr(path_), HasSubstr("overwrite"), says));
    EXPECT_EQ(files_in(dir_.path()), before);
  }

  Tree loaded(const std::string& prefix = "") {
    return must(load(path_, {.prefix = prefix}, runtime_)).tree;
  }

  /// What is there becomes a checkpoint of the reference system.
  void disown() {
    for (const auto& [path, content] : files_in(path_)) {
      const std::string name = std::filesystem::path(path).filename();
      if (name.find("cairn") != std::string::npos) std::filesystem::remove(path);
    }
  }

  testing::TempDir dir_;
  std::string path_ = dir_ / "c";
  std::vector<LogEntry> said_;
  Runtime runtime_{
      {.threads = 1, .log = [this](const LogEntry& entry) { said_.push_back(entry); }}};
};

class ReplacedTreeOfLayout : public ReplacedTree,
                             public ::testing::WithParamInterface<std::string> {
 protected:
  SaveOptions options(bool overwrite = false) const {
    return {.layout = GetParam(), .overwrite = overwrite};
  }
  SaveOptions other_layout() const {
    return {.layout = std::string(GetParam() == kZarr2Layout ? kSafetensorsLayout : kZarr2Layout)};
  }
};

TEST_P(ReplacedTreeOfLayout, OfOtherLeavesStaysWithoutOverwrite) {
  for (const std::string prefix : {"", "model"}) {
    path_ = dir_ / ("c" + prefix);
    must(save(weights(), prefix, options()));
    expect_refused(others(), prefix, options(),
                   AllOf(HasSubstr("only the old one has layers.0, layers.1, rate"),
                         HasSubstr("only the new one has bias")));
    EXPECT_EQ(testing::difference(loaded(prefix), weights()), "");
    must(save(others(), prefix, options(true)));
    EXPECT_EQ(testing::difference(loaded(prefix), others()), "");
  }
}

TEST_P(ReplacedTreeOfLayout, OfTheSameLeavesIsReplaced) {
  for (const std::string prefix : {"", "model"}) {
    path_ = dir_ / ("c" + prefix);
    must(save(weights(), prefix, options()));
    must(save(weights(), prefix, options()));
    const Tree changed =
        Tree::dict({{"w", array({9}, DType::kInt32)},
                    {"layers", Tree::tuple({Tree(Value(Integer(1))), Tree(array({5}))})},
                    {"rate", Value(std::string("fast"))}});
    must(save(changed, prefix, options()));
    EXPECT_EQ(testing::difference(loaded(prefix), changed), "");
    must(save(weights(), prefix, other_layout()));
    EXPECT_EQ(testing::difference(loaded(prefix), weights()), "");
    expect_refused(others(), prefix, options(), HasSubstr("bias"));
  }
  EXPECT_THAT(said_, IsEmpty());
}

TEST_P(ReplacedTreeOfLayout, EachLeafCounts) {
  must(save(weights(), "", options()));
  const Tree more = Tree::dict({{"w", array({4, 3})},
                                {"layers", Tree::list({Tree(array({2})), Tree(array({5}))})},
                                {"rate", Value(0.5)},
                                {"step", Value(Integer(1))}});
  expect_refused(more, "", options(),
                 AllOf(HasSubstr("only the new one has step"), Not(HasSubstr("only the old"))));
  const Tree fewer = Tree::dict(
      {{"w", array({4, 3})}, {"layers", Tree::list({Tree(array({2})), Tree(array({5}))})}});
  expect_refused(fewer, "", options(),
                 AllOf(HasSubstr("only the old one has rate"), Not(HasSubstr("only the new"))));
}

TEST_P(ReplacedTreeOfLayout, OtherPrefixesDoNotCount) {
  must(save(weights(), "model", options()));
  must(save(others(), "tx", options()));
  const auto refused =
      save_checkpoint({{"model", weights()}, {"tx", weights()}}, path_, options(), runtime_);
  ASSERT_EQ(reason(refused), "save/other-tree");
  EXPECT_THAT(refused.error().message(), HasSubstr("prefix 'tx' in " + path_));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ReplacedTreeOfLayout,
                         ::testing::Values(std::string(kZarr2Layout),
                                           std::string(kSafetensorsLayout)));

TEST_F(ReplacedTree, ThatIsDamagedStopsNoSave) {
  must(save_checkpoint({{"model", weights()}, {"tx", weights()}}, path_, {}, runtime_));
  testing::write_file(path_ + "/model/.cairn.json", "{}");
  expect_refused(others(), "tx", {}, HasSubstr("bias"));
  EXPECT_THAT(said_, IsEmpty());
  must(save(others(), "model"));
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_EQ(said_[0].level, LogLevel::kWarning);
  EXPECT_STREQ(said_[0].event, "save/unread-tree");
  EXPECT_THAT(said_[0].message,
              AllOf(HasSubstr("prefix 'model' in " + path_), HasSubstr("damaged")));
  testing::write_file(path_ + "/tensorstore_index.json", "{");
  expect_refused(weights(), "model", {}, HasSubstr("bias"));
}

TEST_F(ReplacedTree, OfTheReferenceIsComparedByItsArrays) {
  for (const std::string prefix : {"", "model"}) {
    path_ = dir_ / ("c" + prefix);
    must(save(weights(), prefix));
    disown();
    expect_refused(others(), prefix, {},
                   AllOf(HasSubstr("only the old one has layers.0, layers.1;"),
                         HasSubstr("only the new one has bias")));
    expect_refused(others(), prefix, {.layout = std::string(kSafetensorsLayout)},
                   HasSubstr("bias"));
    const Tree same = Tree::dict({{"w", Value(Integer(2))},
                                  {"layers", Tree::list({Tree(array({2})), Tree(array({5}))})},
                                  {"name", Value(std::string("any"))}});
    must(save(same, prefix));
    EXPECT_EQ(testing::difference(loaded(prefix), same), "");
  }
}

TEST_F(ReplacedTree, IsWhatAClientMadeOfIt) {
  must(save(weights(), "model"));
  const std::string index = path_ + "/tensorstore_index.json";
  const auto rewrite = [&](std::vector<IndexedArray> list) {
    testing::write_file(index, *must(merge_eformer_index(testing::read_file(index),
                                                         {{"model", index_list(list)}})));
  };
  const IndexedArray w{"model/w", {4, 3}, "float32"};
  rewrite({w, {"model/bias", {2}, "float32"}});
  expect_refused(weights(), "model", {}, HasSubstr("only the old one has bias"));
  must(save(others(), "model"));
  // The same arrays: the values are still those that were saved.
  must(save(weights(), "model", {.overwrite = true}));
  rewrite({{"model/layers/1", {5}, "float32"}, {"model/layers/0", {2}, "float32"}, w});
  expect_refused(Tree::dict({{"w", array({4, 3})},
                             {"layers", Tree::list({Tree(array({2})), Tree(array({5}))})}}),
                 "model", {}, HasSubstr("only the old one has rate"));
}

TEST_F(ReplacedTree, OfSafetensorsFilesOfOthersCounts) {
  const SaveOptions safetensors{.layout = std::string(kSafetensorsLayout)};
  for (const std::uint64_t shard_size : {5 * kGiB, std::uint64_t{1}}) {
    path_ = dir_ / std::to_string(shard_size);
    SaveOptions split = safetensors;
    split.shard_size = shard_size;
    must(save(weights(), "", split));
    disown();
    expect_refused(others(), "", safetensors, HasSubstr("only the new one has bias"));
    must(save(others(), "other", safetensors));
    must(save(others(), "zarr"));
    must(save(weights(), "", safetensors));
  }
}

TEST_F(ReplacedTree, IsNoAttempt) {
  const auto attempt = must(begin_attempt(runtime_.file_system(), runtime_.clock(),
                                          testing::local(path_), {.prefixes = {"model"}}));
  must(attempt->data().put("model/w/.zarray", as_bytes("{}")));
  must(save(others(), "model"));
  // A copy has no writer any more.
  const std::string name = "/.cairn-" + attempt->id();
  path_ = dir_ / "torn";
  std::filesystem::create_directories(path_);
  std::filesystem::copy(dir_ / ("c" + name), path_ + name,
                        std::filesystem::copy_options::recursive);
  must(save(weights(), "model"));
  SaveInternals given_up;
  given_up.guard = []() -> Result<std::shared_ptr<void>> {
    return Error(Code::kCancelled, "own/reason", "given up");
  };
  path_ = dir_ / "retried";
  EXPECT_EQ(reason(save_checkpoint({{"model", weights()}}, path_, {}, runtime_, &given_up)),
            "own/reason");
  must(save(others(), "model"));
}

TEST_F(ReplacedTree, OfASaveInFlightCounts) {
  const std::shared_ptr<Runtime> shared(&runtime_, [](Runtime*) {});
  const SaveInternals internals{.waited_for = true};
  const auto first = must(save_async({{"", weights()}}, path_, {}, shared, &internals));
  const auto second = must(save_async({{"", others()}}, path_, {}, shared, &internals));
  must(first.wait());
  EXPECT_EQ(reason(second.wait()), "save/other-tree");
}

TEST_F(ReplacedTree, ConversionsAskTheSame) {
  must(save(weights(), "model"));
  const auto from = must(open_checkpoint(path_, runtime_));
  for (const std::string to : {"to", "to.safetensors"}) {
    must(save_tree(others(), dir_ / to, {}, runtime_, "model"));
    ConvertOptions options;
    EXPECT_EQ(reason(convert(from, dir_ / to, options, runtime_)), "save/other-tree");
    options.save.overwrite = true;
    must(convert(from, dir_ / to, options, runtime_));
    options.save.overwrite = false;
    must(convert(from, dir_ / to, options, runtime_));
  }
}

TEST_F(ReplacedTree, InOneFileIsNotReplacedByAnother) {
  path_ = dir_ / "c.safetensors";
  testing::write_file(path_, "");
  must(save(weights()));
  must(save(weights(), "model"));
  expect_refused(others(), "", {},
                 AllOf(HasSubstr("only the old one has layers.0, layers.1, rate"),
                       HasSubstr("only the new one has bias")));
  must(save(others(), "", {.overwrite = true}));
  expect_refused(Tree(array({3})), "", {}, HasSubstr("only the new one has the root"));
  const std::vector<std::pair<std::string, std::string>> files{
      {"PK\3\4 and more of it", "not a safetensors file but a zip archive"},
      {"a letter to a friend", "not a safetensors file that can be read"},
      {"x", "not a safetensors file that can be read"}};
  for (const auto& [content, says] : files) {
    testing::write_file(path_, content);
    expect_refused(others(), "", {}, HasSubstr(says));
    must(save(others(), "", {.overwrite = true}));
    EXPECT_EQ(testing::difference(loaded(), others()), "");
  }
}

}  // namespace
}  // namespace cairn
