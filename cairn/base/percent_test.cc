// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/percent.h"

#include <utility>

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Percent, EncodesWhatAFileNameMustNotHold) {
  const std::pair<std::string, std::string> kNames[] = {{"kernel", "kernel"},
                                                        {"", "%"},
                                                        {"%", "%25"},
                                                        {"a.b", "a%2Eb"},
                                                        {"a/b", "a%2Fb"},
                                                        {"a\\b", "a%5Cb"},
                                                        {"..", "%2E%2E"},
                                                        {"\x1f\x7f", "%1F%7F"},
                                                        {std::string(1, '\0'), "%00"},
                                                        {"with space~-_", "with space~-_"},
                                                        {"\xc3\xa9", "\xc3\xa9"}};
  for (const auto& [name, encoded] : kNames) {
    EXPECT_EQ(percent_encode(name), encoded);
    EXPECT_EQ(*percent_decode(encoded), name);
  }
}

TEST(Percent, GivesBackEveryPairOfBytes) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string name{static_cast<char>(first), static_cast<char>(second)};
      const Result<std::string> back = percent_decode(percent_encode(name));
      ASSERT_TRUE(back);
      ASSERT_EQ(*back, name);
    }
  }
}

TEST(Percent, AcceptsLowerCaseAndNeedlessEscapes) {
  EXPECT_EQ(*percent_decode("%2e%41"), ".A");
  EXPECT_EQ(*percent_decode(""), "");
}

TEST(Percent, RefusesAPercentSignThatEscapesNothing) {
  for (const char* text : {"a%", "%%", "%2", "%2g", "%g2", "%-1", "% 1"}) {
    const Result<std::string> name = percent_decode(text);
    ASSERT_FALSE(name) << text;
    EXPECT_EQ(name.error().reason(), "percent/invalid");
    EXPECT_EQ(name.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace cairn
