// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "cairn/array/flat_range.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"
#include "cairn/save/save.h"
#include "cairn/testing/counting_store.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

/// Blocks of a chunk that hold a wanted element, found one element at a time.
std::set<std::uint64_t> needed_blocks(const ManifestArray& array, std::uint64_t chunk,
                                      const Box& wanted) {
  std::set<std::uint64_t> blocks;
  const Box cells = array.stored.chunk_box(chunk);
  const Box common = cells.intersect(wanted);
  const std::size_t item = item_size(array.stored.dtype);
  for (std::uint64_t n = 0; n < common.elements(); ++n) {
    Shape index(common.rank());
    std::uint64_t rest = n;
    for (std::size_t d = common.rank(); d-- > 0;) {
      const auto size = static_cast<std::uint64_t>(common.end[d] - common.begin[d]);
      index[d] = common.begin[d] + static_cast<Index>(rest % size) - cells.begin[d];
      rest /= size;
    }
    blocks.insert(flat_index(array.stored.chunk_shape, index) * item / array.sums.block_bytes());
  }
  return blocks;
}

TEST(LoadPlan, ReadsEachNeededBlockOnceAndNoOther) {
  testing::Random random(2);
  constexpr std::uint64_t kBlock = 4096;
  for (int round = 0; round < 400; ++round) {
    ManifestArray array;
    array.stored.dtype = round % 2 == 0 ? DType::kFloat32 : DType::kUint8;
    for (std::uint64_t d = testing::below(random, 4); d > 0; --d) {
      array.stored.shape.push_back(static_cast<Index>(1 + testing::below(random, 60)));
      array.stored.chunk_shape.push_back(static_cast<Index>(1 + testing::below(random, 60)));
    }
    const std::uint64_t bytes = array.stored.chunk_bytes();
    const std::uint64_t chunks = array.stored.chunk_count();
    array.sums = *ChunkSums::make(kBlock, std::vector<std::uint64_t>(chunks, bytes),
                                  std::vector<std::uint32_t>(chunks * block_count(bytes, kBlock)));
    const Box box = testing::random_box(random, array.stored.shape);
    const LoadPlan plan = plan_load({{&array, box}}, true);
    std::map<std::uint64_t, std::multiset<std::uint64_t>> read;
    for (const ReadJob& job : plan.jobs) {
      ASSERT_EQ(job.begin % kBlock, 0u);
      ASSERT_TRUE(job.end % kBlock == 0 || job.end == bytes);
      for (std::uint64_t at = job.begin; at < job.end; at += kBlock)
        read[job.chunk].insert(at / kBlock);
    }
    for (std::uint64_t n = 0; n < chunks; ++n) {
      const auto needed = needed_blocks(array, n, box);
      ASSERT_EQ(std::vector(read[n].begin(), read[n].end()),
                std::vector(needed.begin(), needed.end()))
          << round;
    }
  }
}

TEST(LoadPlan, BoxesOfOneArrayShareWhatTheyBothNeed) {
  testing::Random random(4);
  constexpr std::uint64_t kBlock = 4096;
  for (int round = 0; round < 200; ++round) {
    ManifestArray array;
    array.stored.dtype = DType::kFloat32;
    array.stored.shape = {90, 90};
    array.stored.chunk_shape = {static_cast<Index>(1 + testing::below(random, 90)), 50};
    array.stored.one_object = false;
    if (round % 2 == 0) array.stored.codec = format::CodecSpec::zstd();
    const std::uint64_t bytes = array.stored.chunk_bytes();
    const std::uint64_t chunks = array.stored.chunk_count();
    array.sums = *ChunkSums::make(kBlock, std::vector<std::uint64_t>(chunks, bytes),
                                  std::vector<std::uint32_t>(chunks * block_count(bytes, kBlock)));
    std::vector<WantedBox> wanted;
    for (int i = 0; i < 4; ++i)
      wanted.push_back({&array, testing::random_box(random, array.stored.shape)});
    wanted.push_back(wanted.front());
    const LoadPlan plan = plan_load(wanted, true);
    std::map<std::uint64_t, std::set<std::uint64_t>> needed;
    for (const WantedBox& want : wanted) {
      for (std::uint64_t n = 0; n < chunks; ++n) needed[n].merge(needed_blocks(array, n, want.box));
    }
    std::map<std::uint64_t, std::multiset<std::uint64_t>> read;
    for (const ReadJob& job : plan.jobs) {
      for (std::uint64_t at = job.begin; at < job.end; at += kBlock)
        read[job.chunk].insert(at / kBlock);
    }
    for (std::uint64_t n = 0; n < chunks; ++n) {
      if (round % 2 == 0) {
        ASSERT_EQ(read[n].size(), needed[n].empty() ? 0 : block_count(bytes, kBlock));
      } else {
        ASSERT_EQ(std::vector(read[n].begin(), read[n].end()),
                  std::vector(needed[n].begin(), needed[n].end()));
      }
    }
  }
}

TEST(LoadPlan, SmallTensorsOfOneFileAreOneRequest) {
  std::vector<ManifestArray> arrays(50);
  std::vector<WantedBox> wanted;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    arrays[i].stored.shape = arrays[i].stored.chunk_shape = {100};
    arrays[i].stored.one_object = true;
    arrays[i].stored.key = i < 40 ? "a" : "b";
    arrays[i].stored.offset = 4096 + 400 * i + (i >= 20 ? kMiB : 0);
    wanted.push_back({&arrays[i], Box::whole({100})});
  }
  std::ranges::reverse(wanted);
  const LoadPlan plan = plan_load(wanted, true);
  EXPECT_EQ(plan.runs.size(), 3u);
  EXPECT_EQ(plan.bytes, 50u * 400);
  EXPECT_EQ(plan.wanted_bytes, 50u * 400);
}

class Reads : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    testing::Random random(1);
    const Tree tree =
        Tree::dict({{"a", testing::random_array(random, DType::kFloat32, {2048, 1024})},
                    {"b", testing::random_array(random, DType::kInt8, {1000})}});
    ASSERT_TRUE(save_tree(tree, dir_ / "c", {.layout = GetParam()}, runtime_, "m"));
    auto opened = open_checkpoint(dir_ / "c", runtime_);
    ASSERT_TRUE(opened) << opened.error().to_string();
    checkpoint_ = *std::move(opened);
    counter_ = std::make_shared<testing::CountingStore>(checkpoint_.prefixes[0].store);
    checkpoint_.prefixes[0].store = counter_;
  }

  Runtime runtime_;
  testing::TempDir dir_;
  Checkpoint checkpoint_;
  std::shared_ptr<testing::CountingStore> counter_;
};

TEST_P(Reads, OneLeafReadsItsOwnBytes) {
  ASSERT_TRUE(load(checkpoint_, {.keys = {KeyPath({"b"})}}, runtime_));
  EXPECT_EQ(counter_->bytes(), 1000u);
}

TEST_P(Reads, ASliceReadsTheBlocksThatHoldIt) {
  // 4 KiB rows: rows 300 to 310 lie in the second block of 1 MiB.
  ASSERT_TRUE(load_box(checkpoint_.prefixes[0], 0, Box{{300, 10}, {310, 20}}, runtime_));
  EXPECT_EQ(counter_->bytes(), kMiB);
}

TEST_P(Reads, WithoutChecksASliceReadsItsRunsAlone) {
  ASSERT_TRUE(load_box(checkpoint_.prefixes[0], 0, Box{{300, 0}, {310, 1024}}, runtime_, false));
  EXPECT_EQ(counter_->bytes(), 10u * 4096);
}

TEST_P(Reads, TheWholeTreeIsReadOnce) {
  ASSERT_TRUE(load(checkpoint_, {}, runtime_));
  EXPECT_EQ(counter_->bytes(), 8 * kMiB + 1000);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Reads,
                         ::testing::Values(std::string(kZarr2Layout),
                                           std::string(kSafetensorsLayout)));

format::StoredArray stored_of(Shape shape, Shape chunk) {
  format::StoredArray stored;
  stored.dtype = DType::kFloat64;
  stored.shape = std::move(shape);
  stored.chunk_shape = std::move(chunk);
  return stored;
}

TEST(PieceBoxes, CoverAnArrayOnce) {
  for (const auto& stored : {stored_of({3, 5000, 300}, {2, 4000, 300}), stored_of({7}, {3}),
                             stored_of({}, {}), stored_of({4, 0}, {2, 1})}) {
    std::vector<int> times(Box::whole(stored.shape).elements());
    PieceBoxes boxes(stored);
    while (const auto box = boxes.next()) {
      EXPECT_LE(box->elements() * sizeof(double), kReadPieceBytes);
      each_run(stored.shape, *box, [&](const Box& run) {
        const std::uint64_t first = flat_index(stored.shape, run.begin);
        for (std::uint64_t i = 0; i < run.elements(); ++i) ++times[first + i];
      });
    }
    EXPECT_EQ(std::ranges::count(times, 1), std::ssize(times)) << to_string(stored.shape);
  }
}

TEST(PieceBoxes, AreNotMadeBeforeTheyAreWanted) {
  const Index huge = Index{1} << 56;
  const auto stored = stored_of({huge}, {huge});
  PieceBoxes boxes(stored);
  for (int n = 0; n < 3; ++n) EXPECT_EQ(boxes.next()->elements() * sizeof(double), kReadPieceBytes);
}

}  // namespace
}  // namespace cairn
