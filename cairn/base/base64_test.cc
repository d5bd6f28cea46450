// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/base64.h"

#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace cairn {
namespace {

// All bytes once, then random ones: every length up to that.
std::string sample(std::size_t size) {
  std::mt19937 random(3);
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(i < 256 ? i : random() & 0xff);
  }
  return bytes;
}

TEST(Base64, GivesTheSamplesOfTheRfc) {
  const std::pair<const char*, const char*> kSamples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"},
                                                          {"\xfb\xff", "+/8="}};
  for (const auto& [bytes, text] : kSamples) {
    EXPECT_EQ(encode_base64(as_bytes(bytes)), text);
    EXPECT_EQ(*decode_base64(text), bytes);
  }
}

TEST(Base64, GivesBackEveryByteAtEveryLength) {
  for (std::size_t size = 0; size < 600; ++size) {
    const std::string bytes = sample(size);
    const Result<std::string> back = decode_base64(encode_base64(as_bytes(bytes)));
    ASSERT_TRUE(back) << size;
    EXPECT_EQ(*back, bytes);
  }
}

TEST(Base64, RefusesWhatIsNotCanonical) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v\n",
                           "Z===", "====", "Zm9-", "Zm9_", "Z g=", "=Zm9", "Zg=a", "\xc3\xa9Zg"}) {
    const Result<std::string> bytes = decode_base64(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().reason(), "base64/invalid");
  }
}

TEST(Hex, GivesBackEveryByte) {
  const std::string bytes = sample(300);
  const std::string text = encode_hex(as_bytes(bytes));
  EXPECT_EQ(text.substr(0, 6), "000102");
  EXPECT_EQ(text.substr(510, 2), "ff");
  EXPECT_EQ(*decode_hex(text), bytes);
  EXPECT_EQ(*decode_hex("aBFf"), "\xab\xff");
  EXPECT_EQ(*decode_hex(""), "");
}

TEST(Hex, RefusesOddLengthsAndOtherCharacters) {
  for (const char* text : {"a", "abc", "0g", "g0", " 0", "0x", "-1"}) {
    const Result<std::string> bytes = decode_hex(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().reason(), "hex/invalid");
  }
}

}  // namespace
}  // namespace cairn
