// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/read_array.h"

#include <cstring>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/format/chunk_codec.h"
#include "cairn/storage/memory/memory_store.h"

namespace cairn::format {
namespace {

using ::testing::HasSubstr;

class ReadArray : public ::testing::Test {
 protected:
  std::string reason(const StoredArray& array) {
    const auto read = read_array(*store_, array);
    return read ? "read" : std::string(read.error().reason());
  }
  void put(const std::string& key, std::string_view bytes) {
    ASSERT_TRUE(store_->put(key, as_bytes(bytes)));
  }
  std::unique_ptr<storage::Store> store_ = storage::make_memory_store();
};

// Each element is its own C-order number, so the oracle needs no copy code: cell by cell it asks
// which chunk holds an index and where in it.
std::string chunk_bytes(const StoredArray& array, std::uint64_t n) {
  const Box box = array.chunk_box(n);
  const Strides strides = array.chunk_strides();
  const Strides numbers = dense_strides(array.shape, 1);
  std::string bytes(array.chunk_memory_bytes(), '\x55');
  for (std::uint64_t cell = 0; cell < box.elements(); ++cell) {
    std::uint64_t rest = cell;
    std::int64_t at = 0;
    std::uint32_t number = 0;
    for (std::size_t i = box.rank(); i-- > 0;) {
      const auto size = static_cast<std::uint64_t>(box.end[i] - box.begin[i]);
      const auto index = static_cast<std::int64_t>(rest % size);
      rest /= size;
      at += index * strides[i];
      number += static_cast<std::uint32_t>((box.begin[i] + index) * numbers[i]);
    }
    std::memcpy(bytes.data() + at, &number, sizeof number);
  }
  return bytes;
}

TEST_F(ReadArray, PutsEveryCellInItsPlace) {
  std::mt19937 random(7);
  const auto below = [&](int end) {
    return std::uniform_int_distribution<Index>(0, end - 1)(random);
  };
  for (int round = 0; round < 200; ++round) {
    StoredArray array;
    array.dtype = DType::kUint32;
    array.key = "round" + std::to_string(round);
    array.fortran_order = below(2) == 1;
    array.big_endian = below(2) == 1;
    array.separator = below(2) == 1 ? '/' : '.';
    for (Index rank = below(4); rank > 0; --rank) {
      array.shape.push_back(below(8));
      array.chunk_shape.push_back(1 + below(8));
    }
    const auto codec = ChunkCodec::make(array);
    ASSERT_TRUE(codec);
    for (std::uint64_t n = 0; n < array.chunk_count(); ++n) {
      const std::string cells = chunk_bytes(array, n);
      const auto stored = codec->encode(as_bytes(cells));
      ASSERT_TRUE(stored);
      put(array.chunk_key(n), as_text(stored->bytes()));
    }
    const auto read = read_array(*store_, array);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(read->shape(), array.shape);
    for (std::uint32_t i = 0; i < read->elements(); ++i) {
      std::uint32_t number = 0;
      std::memcpy(&number, read->bytes().data() + i * sizeof number, sizeof number);
      ASSERT_EQ(number, i) << "round " << round;
    }
  }
}

StoredArray four_bytes() {
  StoredArray array;
  array.dtype = DType::kUint8;
  array.shape = {4};
  array.chunk_shape = {2};
  array.key = "w";
  return array;
}

TEST_F(ReadArray, MissingChunksAreTheFillValue) {
  StoredArray array = four_bytes();
  put("w/1", "cd");
  EXPECT_EQ(as_text(read_array(*store_, array)->bytes()), std::string_view("\0\0cd", 4));
  array.fill = "x";
  EXPECT_EQ(as_text(read_array(*store_, array)->bytes()), "xxcd");
}

TEST_F(ReadArray, NamesTheChunkThatIsDamaged) {
  put("w/0", "ab");
  put("w/1", "c");
  const auto read = read_array(*store_, four_bytes());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().reason(), "chunk/size");
  EXPECT_THAT(read.error().where(), HasSubstr("w/1"));
}

TEST_F(ReadArray, ReadsARangeOfOneObject) {
  StoredArray array = four_bytes();
  array.chunk_shape = array.shape;
  array.one_object = true;
  array.offset = 3;
  EXPECT_EQ(reason(array), "storage/not-found") << "what is one object is never left out";
  put("w", "---abcd+");
  EXPECT_EQ(as_text(read_array(*store_, array)->bytes()), "abcd");
  put("w", "---abc");
  EXPECT_EQ(reason(array), "chunk/size");
  put("w", "-");
  EXPECT_EQ(reason(array), "chunk/size");
}

// Were anything allocated by what the metadata claim, these would run out of memory.
TEST_F(ReadArray, AHugeClaimAllocatesNothing) {
  StoredArray array = four_bytes();
  array.shape = {1 << 20};
  array.chunk_shape = {Index{1} << 50};
  put("w/0", "ab");
  EXPECT_EQ(reason(array), "chunk/size");
  array.codec = CodecSpec::zstd(1);
  EXPECT_EQ(reason(array), "chunk/expansion");
  array.shape = {Index{1} << 50};
  EXPECT_EQ(reason(array), "format/array-too-large");
  const auto unlimited = read_array(*store_, array, std::numeric_limits<std::uint64_t>::max());
  ASSERT_FALSE(unlimited);
  EXPECT_EQ(unlimited.error().reason(), "chunk/expansion") << "not for want of memory";
}

TEST_F(ReadArray, KeepsToTheLimitOfTheCaller) {
  EXPECT_TRUE(read_array(*store_, four_bytes(), 4));
  const auto read = read_array(*store_, four_bytes(), 3);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().reason(), "format/array-too-large");
  EXPECT_EQ(read.error().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace cairn::format
