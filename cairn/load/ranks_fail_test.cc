// SPDX-License-Identifier: Apache-2.0
// Saves by several ranks that fail, as threads: all get one error, and nothing is lost.
#include <filesystem>
#include <future>

#include <gtest/gtest.h>

#include "cairn/base/uri.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/storage/local/posix.h"
#include "cairn/storage/open.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/sharded_leaves.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::part_of;
using testing::tree_of;
using testing::whole_tree;

/// The reports of all ranks.
std::vector<Result<SaveReport>> save_by_ranks(int ranks, const std::string& path,
                                              const std::function<Tree(int)>& tree,
                                              storage::FileSystem* of_rank_zero = nullptr) {
  return testing::by_rank(ranks, [&](coord::Coordinator& coordinator) {
    const int rank = coordinator.rank();
    Runtime runtime({.threads = 1,
                     .file_system = rank == 0 ? of_rank_zero : nullptr,
                     .coordinator = &coordinator});
    return save_tree(tree(rank), path, {.overwrite = true}, runtime, "model");
  });
}

class RanksFail : public ::testing::Test {
 protected:
  RanksFail() {
    testing::Random random(7);
    leaves_ = testing::random_leaves(random, must(Mesh::over_ranks({{"x", 4}}, 4)));
    Runtime runtime;
    must(save_tree(whole_tree(leaves_), path_, {}, runtime, "model"));
  }

  /// All ranks get one error, and what was there before is there still.
  void expect_failure(const std::vector<Result<SaveReport>>& reports, const std::string& text) {
    for (const auto& report : reports) {
      ASSERT_FALSE(report);
      EXPECT_NE(report.error().to_string().find(text), std::string::npos)
          << report.error().to_string();
      EXPECT_EQ(report.error().to_string(), reports[0].error().to_string());
    }
    Runtime runtime;
    EXPECT_EQ(testing::difference(must(load(path_, {}, runtime)).tree, whole_tree(leaves_)), "");
    must(save_tree(whole_tree(leaves_), path_, {}, runtime, "model"));
    for (const auto& entry :
         must(must(storage::open_store(must(parse_uri(path_)), {}))->list("", false)))
      EXPECT_FALSE(entry.directory && entry.key.starts_with(".cairn")) << entry.key;
  }

  testing::TempDir dir_;
  const std::string path_ = dir_ / "c";
  std::vector<testing::ShardedLeaf> leaves_;
};

TEST_F(RanksFail, TogetherWhenOneHasAnotherTree) {
  expect_failure(save_by_ranks(4, path_,
                               [&](int rank) {
                                 auto leaves = leaves_;
                                 if (rank == 2) leaves.pop_back();
                                 return tree_of(leaves, rank);
                               }),
                 "model." + leaves_.back().name + " (only there)");
}

TEST_F(RanksFail, AndNameTheLeavesThatDiffer) {
  const auto tree_with = [](std::int64_t number, const Shape& shape, const char* last) {
    return Tree::dict({{"a", Value(Integer(number))},
                       {"b", Tree(must(Array::zeros(DType::kInt8, shape)))},
                       {"c", Value(true)},
                       {last, Value(true)}});
  };
  expect_failure(save_by_ranks(4, path_,
                               [&](int rank) {
                                 return rank == 1 ? tree_with(2, {3}, "d") : tree_with(1, {4}, "e");
                               }),
                 ": model.a (\"2\" here, \"1\" there), model.b (int8 (3,) here, int8 (4,) there), "
                 "model.d (only "
                 "here), model.e (only there)");
}

TEST_F(RanksFail, TogetherWhenOneHasOtherOptions) {
  const std::vector<SaveOptions> others{{.layout = std::string(kSafetensorsLayout)},
                                        {.enable_compression = true},
                                        {.codec = format::CodecSpec::zstd(3)},
                                        {.float_dtype = DType::kBfloat16},
                                        {.enable_validation = true},
                                        {.chunk_bytes = 1 << 20},
                                        {.shard_size = 1 << 20},
                                        {.write_index = false}};
  for (const SaveOptions& other : others) {
    expect_failure(testing::by_rank(2,
                                    [&](coord::Coordinator& coordinator) {
                                      const int rank = coordinator.rank();
                                      Runtime runtime({.threads = 1, .coordinator = &coordinator});
                                      return save_tree(whole_tree(leaves_), path_,
                                                       rank == 1 ? other : SaveOptions(), runtime,
                                                       "model");
                                    }),
                   "options of the save");
  }
}

TEST_F(RanksFail, TogetherWhenOneHasNothingToSave) {
  const Error refusal(Code::kInvalidArgument, "x/y", "there is nothing here");
  for (const int culprit : {0, 3}) {
    expect_failure(testing::by_rank(4,
                                    [&](coord::Coordinator& coordinator) {
                                      Runtime runtime({.threads = 1, .coordinator = &coordinator});
                                      SaveInternals internals;
                                      if (coordinator.rank() == culprit)
                                        internals.refusal = refusal;
                                      const Tree tree = tree_of(leaves_, coordinator.rank());
                                      return save_checkpoint({{"model", tree}}, path_, {}, runtime,
                                                             &internals);
                                    }),
                   "rank " + std::to_string(culprit) + ": there is nothing here");
  }
}

TEST_F(RanksFail, TogetherWhenOneHasNoMemoryOfItsPart) {
  const Mesh mesh = must(Mesh::over_ranks({{"x", 4}}, 4));
  const Sharding rows = must(NamedSharding::make(mesh, PartitionSpec({{"x"}})));
  testing::Random random(8);
  const Array whole = testing::random_array(random, DType::kInt8, {8});
  for (const int culprit : {0, 3}) {
    expect_failure(
        save_by_ranks(4, path_,
                      [&](int rank) {
                        return Tree::dict(
                            {{"w", Tree(rank == culprit
                                            ? must(ShardedArray::make(DType::kInt8, {8}, rows, {}))
                                            : part_of(whole, rows, rank))}});
                      }),
        "rank " + std::to_string(culprit));
  }
}

TEST_F(RanksFail, TogetherOverATreeWithOtherLeavesUnlessRankZeroOverwrites) {
  const Tree other = Tree::dict({{"new", Value(Integer(1))}});
  const auto save = [&](int overwriting) {
    return testing::by_rank(4, [&](coord::Coordinator& coordinator) {
      Runtime runtime({.threads = 1, .coordinator = &coordinator});
      const SaveOptions options{.overwrite = coordinator.rank() == overwriting};
      return save_tree(other, path_, options, runtime, "model");
    });
  };
  const auto refused = save(1);
  expect_failure(refused, "only the new one has new");
  EXPECT_EQ(testing::reason(refused[3]), "save/other-tree");
  for (const auto& report : save(0)) must(report);
  for (const auto& report : save(-1)) must(report);
}

TEST_F(RanksFail, TogetherWhenTheyMeanOtherPlaces) {
  std::vector<std::string> texts(2);
  testing::run_ranks(2, [&](coord::Coordinator& coordinator) {
    Runtime runtime({.threads = 1, .coordinator = &coordinator});
    const std::string place = coordinator.rank() == 0 ? path_ : dir_ / "elsewhere";
    const auto saved = save_tree(Tree::dict({}), place, {.overwrite = true}, runtime, "model");
    texts[static_cast<std::size_t>(coordinator.rank())] =
        saved ? "saved" : saved.error().to_string();
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("rank 1: this rank and rank 0 do not save the same: place"),
              std::string::npos)
        << text;
  }
}

TEST_F(RanksFail, TogetherWhenRankZeroCannotComeIn) {
  // A directory stands where its phase would be said.
  const auto hindered = testing::interpose(storage::posix_file_system(), [&](std::size_t) {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::error_code nowhere;
      if (entry.path().filename().string().starts_with(".cairn-"))
        std::filesystem::create_directory(entry.path() / "ranks/0.phase", nowhere);
    }
  });
  expect_failure(save_by_ranks(
                     4, path_, [&](int rank) { return tree_of(leaves_, rank); }, hindered.get()),
                 "0.phase: cannot create");
}

TEST_F(RanksFail, AndTheSlowOnesHearWhyAlthoughTheNextSaveHasBegun) {
  const auto attempts = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (std::filesystem::exists(entry.path() / "attempt.json")) found.push_back(entry.path());
    }
    return found;
  };
  // Rank 2 looks for the outcome only after rank 0 has begun to save again.
  std::promise<void> begins;
  const auto begun = begins.get_future().share();
  std::optional<std::filesystem::path> first;
  bool again = false;
  const auto eager = testing::interpose(storage::posix_file_system(), [&](std::size_t) {
    for (const auto& attempt : attempts()) {
      if (!first) first = attempt;
      if (attempt != *first && !std::exchange(again, true)) begins.set_value();
    }
  });
  const auto slow = testing::interpose(storage::posix_file_system(), [&](std::size_t) {
    const auto found = attempts();
    if (!found.empty() && std::filesystem::exists(found[0] / "outcome.json")) begun.wait();
  });
  storage::FileSystem* const file_systems[] = {eager.get(), nullptr, slow.get()};
  const auto saves = testing::by_rank(3, [&](coord::Coordinator& coordinator) {
    const int rank = coordinator.rank();
    Runtime runtime({.threads = 1, .file_system = file_systems[rank], .coordinator = &coordinator});
    const Tree whole = whole_tree(leaves_);
    const Tree other = rank == 1 ? Tree::dict({}) : whole;
    auto failed = save_tree(other, path_, {}, runtime, "model");
    return std::pair(std::move(failed), save_tree(whole, path_, {}, runtime, "model"));
  });
  std::vector<Result<SaveReport>> reports;
  for (const auto& [failed, done] : saves) {
    reports.push_back(failed);
    EXPECT_TRUE(done) << done.error().to_string();
  }
  EXPECT_EQ(attempts().size(), 0u);
  expect_failure(reports, "rank 1: this rank and rank 0 do not save the same");
}

TEST_F(RanksFail, InOneProcessThatHoldsOnlyAPart) {
  const Mesh mesh = must(Mesh::over_ranks({{"x", 4}}, 4));
  const Sharding rows = must(NamedSharding::make(mesh, PartitionSpec({{"x"}})));
  testing::Random random(8);
  const Array whole = testing::random_array(random, DType::kInt8, {8});
  Runtime runtime;
  const auto saved =
      save_tree(Tree::dict({{"w", Tree(part_of(whole, rows, 0))}}), path_, {}, runtime, "model");
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().reason(), "plan/unknown-rank");
}

}  // namespace
}  // namespace cairn
