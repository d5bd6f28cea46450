// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/expansion.h"

#include <gtest/gtest.h>

#include "cairn/base/bytes.h"
#include "cairn/base/json.h"

namespace cairn::format {
namespace {

StoredArray one_chunk(std::uint64_t bytes, Json codec) {
  StoredArray array;
  array.dtype = DType::kUint8;
  array.shape = array.chunk_shape = {static_cast<Index>(bytes)};
  array.codec = CodecSpec(std::move(codec));
  return array;
}

std::string verdict(const StoredArray& array, std::uint64_t stored_bytes) {
  const auto checked = check_expansion(array, stored_bytes);
  return checked ? "fits" : std::string(checked.error().reason());
}

TEST(Expansion, RawChunksHaveExactlyTheirSize) {
  const StoredArray array = one_chunk(24, nullptr);
  EXPECT_EQ(verdict(array, 24), "fits");
  EXPECT_EQ(verdict(array, 23), "chunk/size");
  EXPECT_EQ(verdict(array, 25), "chunk/size");
  EXPECT_EQ(verdict(array, 0), "chunk/size");
}

TEST(Expansion, EachCodecExpandsSoFarAndNoFarther) {
  struct Row {
    const char* codec;
    std::uint64_t most;
  };
  constexpr Row kRows[] = {
      {"gzip", 1032}, {"zlib", 1032}, {"zstd", 32768}, {"blosc", 32768}, {"bz2", 4194304}};
  for (const Row& row : kRows) {
    const Json config = Json::Object{{"id", row.codec}};
    EXPECT_EQ(verdict(one_chunk(100 * row.most, config), 100), "fits") << row.codec;
    EXPECT_EQ(verdict(one_chunk(100 * row.most + 1, config), 100), "chunk/expansion") << row.codec;
    EXPECT_EQ(verdict(one_chunk(1, config), 0), "chunk/expansion") << row.codec;
  }
}

TEST(Expansion, AnObjectFarLargerThanItsChunkIsNotRead) {
  const StoredArray array = one_chunk(100, Json::Object{{"id", "zstd"}});
  EXPECT_EQ(verdict(array, 200 + kMiB), "fits");
  EXPECT_EQ(verdict(array, 201 + kMiB), "chunk/oversized");
}

}  // namespace
}  // namespace cairn::format
