// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/human.h"

#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "cairn/base/bytes.h"

namespace cairn {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

TEST(FormatBytes, KeepsToAFewDigits) {
  const std::pair<std::uint64_t, const char*> kTable[] = {
      {0, "0 B"},
      {999, "999 B"},
      {1023, "1023 B"},
      {1024, "1.0 KiB"},
      {1536, "1.5 KiB"},
      {99 * kKiB + 972, "99.9 KiB"},
      {99 * kKiB + 1000, "100 KiB"},
      {512 * kMiB, "512 MiB"},
      {kMiB - 1, "1.0 MiB"},
      {12 * kGiB, "12.0 GiB"},
      {5'000'000'000, "4.7 GiB"},
      {kLargest, "16.0 EiB"},
  };
  for (const auto& [bytes, text] : kTable) EXPECT_EQ(format_bytes(bytes), text) << bytes;
}

TEST(ParseBytes, KnowsDecimalAndBinaryUnits) {
  const std::pair<const char*, std::uint64_t> kTable[] = {
      {"0", 0},
      {"512", 512},
      {"512B", 512},
      {"512 b", 512},
      {"1k", kKiB},
      {"1KB", 1000},
      {"1KiB", kKiB},
      {"5GB", 5'000'000'000},
      {"5GiB", 5 * kGiB},
      {"5G", 5 * kGiB},
      {"5gib", 5 * kGiB},
      {"1.5 GiB", kGiB + kGiB / 2},
      {"0.5KB", 500},
      {"0.1B", 0},
      {"3TB", 3'000'000'000'000},
      {"1PiB", kGiB << 20},
      {"15EiB", kGiB * 15 << 30},
      {"18446744073709551615", kLargest},
  };
  for (const auto& [text, bytes] : kTable) {
    const Result<std::uint64_t> size = parse_bytes(text);
    ASSERT_TRUE(size) << text;
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text : {"",      " ",
                           "B",     "GB",
                           "-1",    "+1",
                           "1 2",   "1.",
                           ".5",    "1.5.5",
                           "1e3",   "0x10",
                           "1KBs",  "1iB",
                           "1KIBB", "1XB",
                           "1  KB", " 1",
                           "1 ",    "18446744073709551616",
                           "16EiB", "18446744073709551615K",
                           "nan"}) {
    const Result<std::uint64_t> size = parse_bytes(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().reason(), "size/invalid");
  }
}

TEST(ParseBytes, ReadsWhatFormatBytesWrites) {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{700}, kKiB, 3 * kMiB / 2, 12 * kGiB}) {
    EXPECT_EQ(*parse_bytes(format_bytes(bytes)), bytes);
  }
}

TEST(Human, ListsAFewNames) {
  EXPECT_EQ(format_names({}), "");
  EXPECT_EQ(format_names({"a", "b"}), "a, b");
  EXPECT_EQ(format_names({"a", "b", "c", "d", "e"}), "a, b, c, d, e");
  EXPECT_EQ(format_names({"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more");
}

}  // namespace
}  // namespace cairn
