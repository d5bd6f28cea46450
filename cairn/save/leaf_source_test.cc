// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/leaf_source.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "cairn/array/cast.h"
#include "cairn/array/flat_range.h"
#include "cairn/testing/must.h"
#include "cairn/testing/sharded_leaves.h"

namespace cairn {
namespace {

using testing::must;

/// `whole` on a mesh of 2 x 2 devices, all of them here.
ShardedArray on_mesh(const Array& whole, PartitionSpec spec) {
  const Mesh mesh = must(Mesh::over_ranks({{"x", 2}, {"y", 2}}, 1));
  const Sharding sharding = must(NamedSharding::make(mesh, std::move(spec)));
  return testing::part_of(whole, sharding, 0);
}

TEST(MemorySource, GivesTheElementsOfTheWholeWhateverTheBoxes) {
  testing::Random random(31);
  const std::vector<PartitionSpec> specs{{}, {{"x"}}, {{}, {"y"}}, {{"y"}, {"x"}}, {{"x", "y"}}};
  for (int round = 0; round < 400; ++round) {
    const Array whole = testing::random_array(random, DType::kFloat32, {8, 4, 3});
    const bool casts = round % 3 == 0;
    const DType dtype = casts ? DType::kFloat64 : DType::kFloat32;
    const auto source =
        memory_source(on_mesh(whole, specs[testing::below(random, specs.size())]), dtype);
    Array stored = must(Array::allocate(dtype, whole.shape()));
    cast_elements(whole.dtype(), whole.bytes(), dtype, stored.mutable_bytes());
    Buffer scratch;
    const std::uint64_t begin = testing::below(random, 97);
    const std::uint64_t end = begin + testing::below(random, 97 - begin);
    const ByteSpan cells = must(source->range(begin, end, scratch));
    const std::size_t item = item_size(dtype);
    EXPECT_TRUE(std::ranges::equal(cells, stored.bytes().subspan(begin * item, cells.size())));
    EXPECT_EQ(cells.size(), (end - begin) * item);
    const Box box = testing::random_box(random, whole.shape());
    const ByteSpan part = must(source->chunk(box, box.shape(), scratch));
    EXPECT_TRUE(std::ranges::equal(part, must(stored.slice(box).to_dense()).bytes()))
        << box.to_string();
    if (HasFailure()) return;
  }
}

TEST(MemorySource, CopiesNothingThatLiesInOneShard) {
  testing::Random random(32);
  const Array whole = testing::random_array(random, DType::kFloat32, {8, 4, 3});
  struct Case {
    PartitionSpec spec;
    Box box;
    bool one_range;
  };
  const Case cases[] = {
      {{}, {{0, 0, 0}, {8, 4, 3}}, true},
      {{}, {{3, 1, 0}, {4, 3, 3}}, true},
      {{{"x"}}, {{4, 0, 0}, {8, 4, 3}}, true},
      {{{"x"}}, {{5, 0, 0}, {7, 4, 3}}, true},
      {{{"x"}, {"y"}}, {{0, 2, 0}, {4, 4, 3}}, false},
      {{{"x"}, {"y"}}, {{1, 2, 0}, {2, 4, 3}}, true},
  };
  for (const Case& c : cases) {
    const ShardedArray array = on_mesh(whole, c.spec);
    const auto source = memory_source(array, DType::kFloat32);
    const auto holder = std::ranges::find_if(
        array.shards(), [&](const Shard& shard) { return array.box_of(shard).contains(c.box); });
    const Box inside = c.box.relative_to(array.box_of(*holder).begin);
    Buffer scratch;
    EXPECT_EQ(must(source->chunk(c.box, c.box.shape(), scratch)).data(),
              holder->data.slice(inside).data());
    if (!c.one_range) continue;
    const std::uint64_t first = flat_index(whole.shape(), c.box.begin);
    EXPECT_EQ(must(source->range(first, first + c.box.elements(), scratch)).data(),
              holder->data.slice(inside).data());
  }
  // From the middle of one row of the array to the middle of another.
  const ShardedArray rows = on_mesh(whole, {{"x"}});
  Buffer scratch;
  EXPECT_EQ(must(memory_source(rows, DType::kFloat32)->range(50, 77, scratch)).data(),
            rows.shards()[2].data.data() + 2 * sizeof(float));
}

TEST(MemorySource, TakesEachElementFromOneReplicaOnly) {
  const ShardedArray array = on_mesh(must(Array::zeros(DType::kInt8, {8, 4, 3})), {{"x"}});
  std::vector<Shard> shards = array.shards();
  for (Shard& shard : shards) {
    const auto number = static_cast<std::byte>(shard.position);
    std::ranges::fill(shard.data.mutable_bytes(), number);
  }
  Buffer scratch;
  const ByteSpan cells = must(memory_source(array, DType::kInt8)->range(0, 96, scratch));
  for (std::size_t at = 0; at < cells.size(); ++at)
    EXPECT_EQ(cells[at], static_cast<std::byte>(at < 48 ? 0 : 2)) << at;
}

}  // namespace
}  // namespace cairn
