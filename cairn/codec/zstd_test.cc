// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/zstd.h"

#include <gtest/gtest.h>

namespace cairn::codec {
namespace {

using namespace std::string_literals;

const std::string kMagic = "\x28\xb5\x2f\xfd";

/// A block: 0 raw, 1 one byte repeated `size` times.
std::string block(int type, std::uint32_t size, std::string_view body, bool last) {
  const std::uint32_t word = (last ? 1U : 0U) | static_cast<std::uint32_t>(type) << 1 | size << 3;
  std::string bytes;
  for (int shift : {0, 8, 16}) bytes += static_cast<char>(word >> shift);
  return bytes.append(body);
}

/// A frame of one raw block that says it holds `content` bytes.
std::string frame(std::uint8_t content, std::string_view body) {
  return kMagic + '\x20' + static_cast<char>(content) +
         block(0, static_cast<std::uint32_t>(body.size()), body, true);
}

Result<std::string> decoded(const std::string& stored, std::size_t size) {
  const auto codec = *make_zstd(*parse_json(R"({"id":"zstd"})"), 1);
  std::string out(size, '?');
  const auto result = codec->decode(
      as_bytes(stored), MutableByteSpan(reinterpret_cast<std::byte*>(out.data()), size));
  if (!result) return result.error();
  return out;
}

std::string outcome(const std::string& stored, std::size_t size) {
  const auto result = decoded(stored, size);
  return result ? "ok" : std::string(result.error().reason());
}

TEST(Zstd, ReadsAFrameMadeByHand) { EXPECT_EQ(*decoded(frame(5, "stone"), 5), "stone"); }

TEST(Zstd, ReadsFramesWithoutContentSizeAndWithHugeWindows) {
  // A window of 2^30 bytes: nothing of that size is allocated for a chunk that is in memory whole.
  for (const char window : {'\x00', '\xa0'}) {
    const std::string stored =
        kMagic + '\0' + window + block(0, 3, "abc", false) + block(1, 4, "d", true);
    EXPECT_EQ(decoded(stored, 7).value_or(""), "abcdddd");
  }
}

TEST(Zstd, RefusesWhatIsNotExactlyOneFrame) {
  const std::string good = frame(5, "stone");
  const std::string skippable = "\x50\x2a\x4d\x18\x04\x00\x00\x00skip"s;
  EXPECT_EQ(outcome(skippable + good, 5), "zstd/invalid");
  EXPECT_EQ(outcome(skippable, 0), "zstd/invalid");
  EXPECT_EQ(outcome(good + skippable, 5), "zstd/trailing-bytes");
  EXPECT_EQ(outcome(good + frame(0, ""), 5), "zstd/trailing-bytes");
  EXPECT_EQ(outcome(frame(0, "") + good, 5), "zstd/trailing-bytes");
}

TEST(Zstd, DoesNotBelieveTheContentSize) {
  EXPECT_EQ(outcome(frame(9, "stone"), 9), "zstd/invalid");
  EXPECT_EQ(outcome(frame(9, "stone"), 5), "zstd/too-long");
  EXPECT_EQ(outcome(frame(3, "stone"), 5), "zstd/too-short");
  EXPECT_EQ(outcome(frame(3, "stone"), 3), "zstd/too-long");
}

TEST(Zstd, RefusesABombWithoutContentSize) {
  std::string bomb = kMagic + '\0' + '\x38';
  for (int i = 0; i < 16384; ++i) bomb += block(1, 128 << 10, "x", i == 16383);
  EXPECT_EQ(outcome(bomb, 24), "zstd/too-long");
}

TEST(Zstd, RefusesOtherFormatsAndDictionaries) {
  EXPECT_EQ(outcome("\x27\xb5\x2f\xfd" + frame(5, "stone").substr(4), 5), "zstd/invalid");
  const std::string with_dictionary = kMagic + "\x21\x07\x05" + block(0, 5, "stone", true);
  EXPECT_EQ(outcome(with_dictionary, 5), "zstd/invalid");
  const std::string reserved_block = kMagic + "\x20\x05" + block(3, 5, "stone", true);
  EXPECT_EQ(outcome(reserved_block, 5), "zstd/invalid");
}

TEST(Zstd, WritesTheContentSizeAndAChecksumOnlyOnDemand) {
  const auto plain = *make_zstd(*parse_json(R"({"id":"zstd"})"), 1);
  const auto summed = *make_zstd(*parse_json(R"({"id":"zstd","checksum":true})"), 1);
  for (std::size_t size : {0U, 1U, 255U, 256U, 70'000U}) {
    const std::string raw(size, 'a');
    const std::byte descriptor = plain->encode(as_bytes(raw))->data()[4];
    // Single segment, or a content size field: either way the size is there.
    EXPECT_NE(descriptor & std::byte{0xe0}, std::byte{0}) << size;
    EXPECT_EQ(descriptor & std::byte{0x07}, std::byte{0}) << size;
    EXPECT_EQ(summed->encode(as_bytes(raw))->data()[4], descriptor | std::byte{0x04}) << size;
  }
}

}  // namespace
}  // namespace cairn::codec
