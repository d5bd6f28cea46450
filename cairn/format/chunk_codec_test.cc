// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/chunk_codec.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace cairn::format {
namespace {

StoredArray array_of(DType dtype, Index elements, const char* codec = "raw") {
  StoredArray array;
  array.dtype = dtype;
  array.shape = {elements};
  array.chunk_shape = {elements};
  array.codec = *CodecSpec::parse(codec);
  return array;
}

StoredArray packed_array(DType dtype, Index elements, const char* codec = "raw") {
  StoredArray array = array_of(dtype, elements, codec);
  array.packed = true;
  return array;
}

StoredArray big_endian_array(DType dtype, Index elements, const char* codec = "raw") {
  StoredArray array = array_of(dtype, elements, codec);
  array.big_endian = true;
  return array;
}

Result<std::string> decoded(const StoredArray& array, std::string_view stored) {
  std::string out(array.chunk_memory_bytes(), '?');
  const auto result = ChunkCodec::make(array)->decode(
      as_bytes(stored), {reinterpret_cast<std::byte*>(out.data()), out.size()});
  if (!result) return result.error();
  return out;
}

Result<std::string> encoded(const StoredArray& array, std::string_view cells) {
  const auto stored = ChunkCodec::make(array)->encode(as_bytes(cells));
  if (!stored) return stored.error();
  return std::string(as_text(stored->bytes()));
}

/// Random elements as they lie in memory.
std::string cells_of(const StoredArray& array, std::mt19937& random) {
  const int bits = std::min(array.dtype == DType::kBool ? 1 : bit_width(array.dtype), 8);
  std::string cells(array.chunk_memory_bytes(), '\0');
  std::ranges::generate(cells, [&] { return static_cast<char>(random() & ((1U << bits) - 1)); });
  return cells;
}

TEST(ChunkCodec, DecodesWhatItEncodedForEveryDtype) {
  std::mt19937 random(5);
  for (DType dtype : all_dtypes()) {
    for (const char* codec : {"raw", "zstd", "gzip", "zlib", "bz2", "blosc"}) {
      for (const StoredArray& array :
           {array_of(dtype, 77, codec), big_endian_array(dtype, 77, codec),
            packed_array(dtype, 77, codec)}) {
        const std::string cells = cells_of(array, random);
        const auto stored = encoded(array, cells);
        ASSERT_TRUE(stored) << stored.error().to_string();
        EXPECT_TRUE(!array.codec.is_raw() || stored->size() == array.chunk_bytes());
        const auto back = decoded(array, *stored);
        ASSERT_TRUE(back) << dtype_name(dtype) << " " << codec << ": " << back.error().to_string();
        EXPECT_EQ(*back, cells) << dtype_name(dtype) << " " << codec;
      }
    }
  }
}

TEST(ChunkCodec, SwapsTheBytesOfEachNumber) {
  EXPECT_EQ(*encoded(big_endian_array(DType::kInt16, 2), "abcd"), "badc");
  EXPECT_EQ(*encoded(big_endian_array(DType::kFloat32, 2), "abcdefgh"), "dcbahgfe");
  EXPECT_EQ(*encoded(big_endian_array(DType::kComplex64, 1), "abcdefgh"), "dcbahgfe");
  EXPECT_EQ(*encoded(big_endian_array(DType::kFloat64, 1), "abcdefgh"), "hgfedcba");
  EXPECT_EQ(*encoded(big_endian_array(DType::kUint8, 3), "abc"), "abc");
  EXPECT_EQ(*decoded(big_endian_array(DType::kFloat32, 2), "dcbahgfe"), "abcdefgh");
}

TEST(ChunkCodec, PacksTheFirstElementIntoTheLowestBits) {
  EXPECT_EQ(*encoded(packed_array(DType::kFloat4E2m1fn, 3), "\x1\x2\x3"), "\x21\x03");
  EXPECT_EQ(*decoded(packed_array(DType::kFloat4E2m1fn, 3), "\x21\x03"), "\x1\x2\x3");
  EXPECT_EQ(encoded(packed_array(DType::kInt2, 4), "\x1\x2\x3\x1").value_or(""), "\x79");
}

TEST(ChunkCodec, RefusesARawChunkOfAnotherLength) {
  for (const StoredArray& array : {array_of(DType::kInt16, 4), packed_array(DType::kInt4, 16),
                                   big_endian_array(DType::kInt32, 2), array_of(DType::kBool, 8)}) {
    for (std::size_t size : {0U, 1U, 7U, 9U, 16U, 1000U}) {
      const auto result = decoded(array, std::string(size, '\1'));
      ASSERT_FALSE(result) << size;
      EXPECT_EQ(result.error().code(), Code::kCorrupt);
      EXPECT_EQ(result.error().reason(), "chunk/size");
    }
    EXPECT_TRUE(decoded(array, std::string(8, '\1')));
  }
}

TEST(ChunkCodec, RefusesBoolThatIsNeitherZeroNorOne) {
  const std::string good("\0\1\1\0\1", 5);
  for (const char* codec : {"raw", "zstd"}) {
    const StoredArray array = array_of(DType::kBool, 5, codec);
    EXPECT_EQ(*decoded(array, *encoded(array, good)), good);
    for (const char byte : {'\x02', '\x03', '\x80', '\xff'}) {
      for (std::size_t at = 0; at < good.size(); ++at) {
        std::string bad = good;
        bad[at] = byte;
        const auto unwritten = encoded(array, bad);
        ASSERT_FALSE(unwritten);
        EXPECT_EQ(unwritten.error().code(), Code::kInvalidArgument);
        EXPECT_EQ(unwritten.error().reason(), "chunk/bool");
        const auto unread = decoded(array, *encoded(array_of(DType::kUint8, 5, codec), bad));
        ASSERT_FALSE(unread);
        EXPECT_EQ(unread.error().code(), Code::kCorrupt);
        EXPECT_EQ(unread.error().reason(), "chunk/bool");
      }
    }
  }
}

TEST(ChunkCodec, ClearsUnusedHighBitsBothWays) {
  std::string any;
  for (int byte = 0; byte < 256; ++byte) any += static_cast<char>(byte);
  for (DType dtype : all_dtypes()) {
    if (item_size(dtype) != 1 || dtype == DType::kBool) continue;
    std::string masked = any;
    for (char& c : masked) c = static_cast<char>(c & ((1 << bit_width(dtype)) - 1));
    for (const char* codec : {"raw", "zstd"}) {
      const StoredArray array = array_of(dtype, 256, codec);
      EXPECT_EQ(*decoded(array, *encoded(array_of(DType::kUint8, 256, codec), any)), masked);
      EXPECT_EQ(*encoded(array, any), *encoded(array, masked)) << dtype_name(dtype);
    }
  }
}

TEST(ChunkCodec, CopiesOnlyWhatItMustChange) {
  const std::string cells("\1\2\3\4\5\6\7\0", 8);
  const auto borrows = [&](const StoredArray& array) {
    return ChunkCodec::make(array)->encode(as_bytes(cells))->data() == as_bytes(cells).data();
  };
  EXPECT_TRUE(borrows(array_of(DType::kFloat32, 2)));
  EXPECT_TRUE(borrows(array_of(DType::kInt4, 8)));
  EXPECT_TRUE(borrows(big_endian_array(DType::kInt8, 8)));
  EXPECT_FALSE(borrows(array_of(DType::kInt2, 8)));
  EXPECT_FALSE(borrows(big_endian_array(DType::kFloat32, 2)));
  EXPECT_FALSE(borrows(packed_array(DType::kInt4, 8)));
  EXPECT_FALSE(borrows(array_of(DType::kFloat32, 2, "zstd")));
}

TEST(ChunkCodec, TellsTheCodecTheItemSize) {
  const std::string cells(4096, '\0');
  EXPECT_EQ((*encoded(array_of(DType::kFloat64, 512, "blosc"), cells))[3], 8);
  EXPECT_EQ((*encoded(array_of(DType::kBfloat16, 2048, "blosc"), cells))[3], 2);
}

TEST(ChunkCodec, PassesOnWhatTheCodecSays) {
  const StoredArray array = array_of(DType::kInt16, 4, "zstd");
  EXPECT_EQ(decoded(array, "").error().reason(), "zstd/truncated");
  EXPECT_EQ(decoded(packed_array(DType::kInt4, 4, "zstd"), "").error().reason(), "zstd/truncated");
  StoredArray unknown = array;
  unknown.codec = CodecSpec(*parse_json(R"({"id":"snakeoil"})"));
  EXPECT_EQ(ChunkCodec::make(unknown).error().reason(), "codec/unknown");
}

}  // namespace
}  // namespace cairn::format
