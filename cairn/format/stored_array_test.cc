// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/stored_array.h"

#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace cairn::format {
namespace {

StoredArray array_of(Shape shape, Shape chunk_shape, DType dtype = DType::kFloat32) {
  StoredArray array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.chunk_shape = std::move(chunk_shape);
  array.key = "params.w";
  return array;
}

TEST(StoredArray, CountsChunksAlongEachDimension) {
  EXPECT_EQ(array_of({37, 21}, {16, 8}).grid(), (Shape{3, 3}));
  EXPECT_EQ(array_of({32, 8}, {16, 8}).grid(), (Shape{2, 1}));
  EXPECT_EQ(array_of({5}, {100}).grid(), (Shape{1}));
  EXPECT_EQ(array_of({37, 21}, {16, 8}).chunk_count(), 9U);
}

TEST(StoredArray, ChecksThatSizesFit) {
  const auto outcome = [](Shape shape, Shape chunk, std::uint64_t offset = 0) {
    StoredArray array = array_of(std::move(shape), std::move(chunk), DType::kFloat64);
    array.offset = offset;
    const auto fits = array.check_sizes();
    return fits ? std::string("fits") : std::string(fits.error().reason());
  };
  constexpr Index kMost = std::numeric_limits<Index>::max();
  constexpr Index kLarge = Index{1} << 57;
  EXPECT_EQ(outcome({}, {}), "fits");
  EXPECT_EQ(outcome({kLarge}, {1}), "fits");
  EXPECT_EQ(outcome({1}, {kLarge}), "fits");
  EXPECT_EQ(outcome({0, kLarge}, {1, 1}, kMaxArrayBytes), "fits");
  EXPECT_EQ(outcome({kLarge + 1}, {1}), "array/shape-overflow");
  EXPECT_EQ(outcome({kMost, kMost}, {1, 1}), "array/shape-overflow");
  EXPECT_EQ(outcome({0, kMost}, {1, 1}), "array/shape-overflow");
  EXPECT_EQ(outcome({100000}, {(Index{1} << 61) + 1}), "array/chunk-overflow");
  EXPECT_EQ(outcome({100000}, {Index{1} << 61}), "array/chunk-overflow");
  EXPECT_EQ(outcome({1, 1}, {kMost, kMost}), "array/chunk-overflow");
  EXPECT_EQ(outcome({kLarge}, {kLarge - 1}), "array/chunk-overflow");
  EXPECT_EQ(outcome({1}, {1}, kMaxArrayBytes + 1), "array/offset-overflow");
}

TEST(StoredArray, OfRankZeroIsOneChunkNamedZero) {
  const StoredArray array = array_of({}, {});
  EXPECT_EQ(array.chunk_count(), 1U);
  EXPECT_EQ(array.chunk_name(0), "0");
  EXPECT_EQ(array.chunk_key(0), "params.w/0");
  EXPECT_EQ(array.chunk_box(0), (Box{{}, {}}));
  EXPECT_EQ(array.chunk_bytes(), 4U);
}

TEST(StoredArray, OfNoElementsHasNoChunks) {
  EXPECT_EQ(array_of({0}, {1}).chunk_count(), 0U);
  EXPECT_EQ(array_of({3, 0, 2}, {1, 4, 2}).chunk_count(), 0U);
  EXPECT_EQ(array_of({Index{1} << 40, 0, Index{1} << 40}, {1, 1, 1}).chunk_count(), 0U);
}

TEST(StoredArray, NamesChunksByPosition) {
  StoredArray array = array_of({4, 4, 40}, {2, 4, 3});
  EXPECT_EQ(array.chunk_position(27), (Shape{1, 0, 13}));
  EXPECT_EQ(array.chunk_name(27), "1.0.13");
  EXPECT_EQ(array.chunk_key(27), "params.w/1.0.13");
  array.separator = '/';
  EXPECT_EQ(array.chunk_key(27), "params.w/1/0/13");
  array.key.clear();
  EXPECT_EQ(array.chunk_key(27), "1/0/13");
  array.one_object = true;
  array.key = "model.safetensors";
  EXPECT_EQ(array.chunk_key(0), "model.safetensors");
}

TEST(StoredArray, ClipsChunksAtTheEdgeEvenOfHugeArrays) {
  EXPECT_EQ(array_of({37, 21}, {16, 8}).chunk_box(8), (Box{{32, 16}, {37, 21}}));
  EXPECT_EQ(array_of({3}, {Index{1} << 62}).chunk_box(0), (Box{{0}, {3}}));
  const Index most = std::numeric_limits<Index>::max();
  EXPECT_EQ(array_of({most}, {most - 1}).chunk_box(1), (Box{{most - 1}, {most}}));
}

TEST(StoredArray, ChunkBoxesTileTheArray) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    StoredArray array = array_of({}, {});
    for (auto rank = random() % 4; rank-- > 0;) {
      array.shape.push_back(static_cast<Index>(random() % 7));
      array.chunk_shape.push_back(static_cast<Index>(1 + random() % 4));
    }
    const Strides strides = dense_strides(array.shape, 1);
    std::vector<int> seen(*element_count(array.shape), 0);
    for (std::uint64_t n = 0; n < array.chunk_count(); ++n) {
      const Box box = array.chunk_box(n);
      ASSERT_FALSE(box.empty());
      const Strides inside = dense_strides(box.shape(), 1);
      for (std::uint64_t i = 0; i < box.elements(); ++i) {
        std::int64_t rest = static_cast<std::int64_t>(i);
        std::int64_t at = 0;
        for (std::size_t d = 0; d < box.rank(); ++d) {
          at += (box.begin[d] + rest / inside[d]) * strides[d];
          rest %= inside[d];
        }
        ++seen[static_cast<std::size_t>(at)];
      }
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](int count) { return count == 1; }));
  }
}

TEST(StoredArray, CountsBytesOfWholeChunks) {
  EXPECT_EQ(array_of({37, 21}, {16, 8}).chunk_bytes(), 512U);
  EXPECT_EQ(array_of({3}, {5}, DType::kInt4).chunk_bytes(), 5U);
  StoredArray packed = array_of({3}, {3}, DType::kFloat6E2m3fn);
  packed.packed = true;
  EXPECT_EQ(packed.chunk_bytes(), 3U);
  EXPECT_EQ(packed.chunk_memory_bytes(), 3U);
  packed.chunk_shape = {8};
  EXPECT_EQ(packed.chunk_bytes(), 6U);
  packed.dtype = DType::kFloat4E2m1fn;
  packed.chunk_shape = {9};
  EXPECT_EQ(packed.chunk_bytes(), 5U);
  packed.chunk_shape = {Index{1} << 62};
  EXPECT_EQ(packed.chunk_bytes(), std::uint64_t{1} << 61);
}

TEST(StoredArray, StridesFollowTheOrderOfCells) {
  StoredArray array = array_of({37, 21}, {16, 8});
  EXPECT_EQ(array.chunk_strides(), (Strides{32, 4}));
  array.fortran_order = true;
  EXPECT_EQ(array.chunk_strides(), (Strides{4, 64}));
}

TEST(StoredArray, IsPlainOnlyIfBytesNeedNoChangeOrCheck) {
  for (DType dtype : all_dtypes()) {
    const bool whole = dtype != DType::kBool && bit_width(dtype) >= 8;
    EXPECT_EQ(array_of({4}, {4}, dtype).plain(), whole) << dtype_name(dtype);
  }
  StoredArray array = array_of({4}, {4});
  array.fortran_order = true;
  EXPECT_TRUE(array.plain());
  array.codec = CodecSpec::zstd();
  EXPECT_FALSE(array.plain());
  array.codec = CodecSpec::raw();
  array.big_endian = true;
  EXPECT_FALSE(array.plain());
  array.big_endian = false;
  array.packed = true;
  EXPECT_FALSE(array.plain());
}

TEST(FillCells, RepeatsOneElement) {
  for (const std::string& fill : {std::string(4, '\0'), std::string("\0\0\x80\x3f", 4),
                                  std::string("aaaa"), std::string("abcd")}) {
    for (std::size_t count : {0U, 1U, 2U, 3U, 7U, 1000U}) {
      StoredArray array = array_of({4}, {4});
      array.fill = fill;
      std::string expected;
      for (std::size_t i = 0; i < count; ++i) expected += fill;
      std::string cells(count * 4, '?');
      fill_cells(array, {reinterpret_cast<std::byte*>(cells.data()), cells.size()});
      EXPECT_EQ(cells, expected);
    }
  }
}

TEST(FillCells, WithoutAFillValueAreZero) {
  std::string cells(9, '?');
  fill_cells(array_of({4}, {4}), {reinterpret_cast<std::byte*>(cells.data()), cells.size()});
  EXPECT_EQ(cells, std::string(9, '\0'));
}

}  // namespace
}  // namespace cairn::format
