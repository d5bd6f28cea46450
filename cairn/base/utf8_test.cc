// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace cairn {
namespace {

std::string encode(std::uint32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, DecodesEveryCodePointButSurrogates) {
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    const std::string text = encode(code);
    const Utf8Char decoded = decode_utf8(text + "x");
    ASSERT_EQ(decoded.size, surrogate ? 0 : text.size()) << code;
    ASSERT_EQ(decoded.code, surrogate ? 0 : code);
  }
}

TEST(Utf8, FindsTheFirstBadByteWhereverItStands) {
  for (const std::string bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe2\x82",
        "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    for (std::size_t before = 0; before < 20; ++before) {
      const std::string text = std::string(before, 'a') + bad;
      EXPECT_EQ(valid_utf8_prefix(text), before);
      EXPECT_EQ(valid_utf8_prefix("\xc3\xa9" + text + "aaaaaaaaaaaa"), before + 2);
      EXPECT_FALSE(is_utf8(text));
    }
  }
}

TEST(Utf8, AcceptsMixedText) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(
      is_utf8(std::string(100, 'x') + "\xe2\x82\xac and \xf0\x9f\x98\x80" + std::string(9, 'y')));
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable("\x1b[31m\x07\x7f"), "\\x1b[31m\\x07\\x7f");
  EXPECT_EQ(printable("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");
  EXPECT_EQ(printable("\xe2\x80\xae\xf3\xa0\x81\x81"), "\\u202e\\U000e0041");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3") << "no UTF-8";
  EXPECT_EQ(printable("\xc3\xa9\xe4\xb8\xad"), "\xc3\xa9\xe4\xb8\xad") << "letters stay";
}

TEST(Printable, LeavesWhatHasPassed) {
  const std::string once = printable("\x1b\n\xff\xe2\x80\xae");
  EXPECT_EQ(printable(once), once);
}

}  // namespace
}  // namespace cairn
