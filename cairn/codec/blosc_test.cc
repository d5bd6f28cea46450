// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/blosc.h"

#include <gtest/gtest.h>

namespace cairn::codec {
namespace {

std::unique_ptr<Codec> blosc(const std::string& members = "", std::size_t item_size = 4) {
  return *make_blosc(*parse_json(R"({"id":"blosc")" + members + "}"), item_size);
}

std::string encoded(const Codec& codec, std::string_view raw) {
  return std::string(as_text(codec.encode(as_bytes(raw))->bytes()));
}

std::string outcome(const std::string& stored, std::size_t size) {
  std::string out(size, '?');
  const auto result = blosc()->decode(
      as_bytes(stored), MutableByteSpan(reinterpret_cast<std::byte*>(out.data()), size));
  return result ? "ok" : std::string(result.error().reason());
}

/// Flags that say how the bytes were shuffled.
int shuffle_flags(const std::string& stored) { return stored[2] & 0x05; }

const std::string kRaw(4096, 'a');

TEST(Blosc, ShufflesAsToldAndByItemSizeOnItsOwn) {
  constexpr int kNone = 0;
  constexpr int kBytes = 1;
  constexpr int kBits = 4;
  const auto flags = [](const char* members, std::size_t item_size) {
    return shuffle_flags(encoded(*blosc(members, item_size), kRaw));
  };
  EXPECT_EQ(flags("", 1), kBits);
  EXPECT_EQ(flags("", 4), kBytes);
  EXPECT_EQ(flags(R"(,"shuffle":-1)", 1), kBits);
  EXPECT_EQ(flags(R"(,"shuffle":-1)", 2), kBytes);
  EXPECT_EQ(flags(R"(,"shuffle":0)", 4), kNone);
  EXPECT_EQ(flags(R"(,"shuffle":1)", 4), kBytes);
  EXPECT_EQ(flags(R"(,"shuffle":2)", 4), kBits);
}

TEST(Blosc, WritesItemSizeAndInnerCodecIntoTheHeader) {
  EXPECT_EQ(encoded(*blosc("", 8), kRaw)[3], 8);
  const char* inner[] = {"blosclz", "lz4", "snappy", "zlib", "zstd"};
  for (int format = 0; format < 5; ++format) {
    const std::string members = std::string(R"(,"cname":")") + inner[format] + '"';
    EXPECT_EQ(static_cast<std::uint8_t>(encoded(*blosc(members), kRaw)[2]) >> 5, format);
  }
}

TEST(Blosc, RefusesToEncodeMoreThanTheFormatHolds) {
  // Refused before a byte is read.
  const ByteSpan huge(as_bytes(kRaw).data(), std::size_t{1} << 31);
  const auto stored = blosc()->encode(huge);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(stored.error().reason(), "blosc/too-large");
}

struct Lie {
  const char* about;
  std::size_t position;
  std::uint8_t value;
  const char* reason;
};

TEST(Blosc, RefusesEachLieInTheHeader) {
  const std::string good = encoded(*blosc(), kRaw);
  ASSERT_EQ(outcome(good, kRaw.size()), "ok");
  const Lie lies[] = {
      {"version before the first", 0, 1, "blosc/invalid"},
      {"version of blosc 2", 0, 5, "blosc/invalid"},
      {"version of the inner codec", 1, 9, "blosc/invalid"},
      {"inner codec 5", 2, 5 << 5, "blosc/invalid"},
      {"inner codec 7", 2, 7 << 5, "blosc/invalid"},
      {"item size 0", 3, 0, "blosc/invalid"},
      {"content smaller", 5, 0x0f, "blosc/too-short"},
      {"content larger", 5, 0x11, "blosc/too-long"},
      {"content negative", 7, 0x80, "blosc/too-long"},
      {"block of 0", 9, 0, "blosc/invalid"},
      {"block larger than the content", 9, 0x11, "blosc/invalid"},
      {"block negative", 11, 0x80, "blosc/invalid"},
      {"stored smaller", 12, 0, "blosc/trailing-bytes"},
      {"stored larger", 13, 1, "blosc/truncated"},
      {"stored negative", 15, 0x80, "blosc/truncated"},
      {"first block starts far away", 19, 0x7f, "blosc/invalid"},
      {"first block starts before the data", 19, 0x80, "blosc/invalid"},
      {"first block starts in the header", 16, 0, "blosc/invalid"},
  };
  for (const Lie& lie : lies) {
    std::string stored = good;
    stored[lie.position] = static_cast<char>(lie.value);
    EXPECT_EQ(outcome(stored, kRaw.size()), lie.reason) << lie.about;
  }
}

TEST(Blosc, RefusesACopiedChunkThatIsTooSmallForItsContent) {
  std::string stored = encoded(*blosc(R"(,"clevel":0)"), kRaw);
  ASSERT_EQ(stored.size(), kRaw.size() + 16);
  ASSERT_EQ(outcome(stored, kRaw.size()), "ok");
  stored.resize(16 + 100);
  stored[12] = 116;
  stored[13] = 0;
  EXPECT_EQ(outcome(stored, kRaw.size()), "blosc/invalid");
}

}  // namespace
}  // namespace cairn::codec
