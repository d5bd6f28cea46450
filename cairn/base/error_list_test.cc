// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/error_list.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

Error wrong(int n) {
  return Error(n == 0 ? Code::kCorrupt : Code::kNotFound, n == 0 ? "a/first" : "a/other",
               "sentence " + std::to_string(n))
      .in("leaf " + std::to_string(n));
}

TEST(ErrorList, IsNothingWithoutErrors) {
  ErrorList errors;
  EXPECT_TRUE(errors.take(Result<int>(3)));
  EXPECT_TRUE(errors.empty());
  EXPECT_TRUE(errors.result());
}

TEST(ErrorList, LeavesOneErrorAsItWas) {
  ErrorList errors;
  EXPECT_FALSE(errors.take(Result<int>(wrong(0))));
  EXPECT_FALSE(errors.empty());
  const Error error = errors.result().error();
  EXPECT_EQ(error.message(), "sentence 0");
  EXPECT_EQ(error.where(), "leaf 0");
}

TEST(ErrorList, SaysAllSentencesWithTheFirstReason) {
  ErrorList errors;
  for (int n = 0; n < 3; ++n) errors.add(wrong(n));
  const Error error = errors.result().error();
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.reason(), "a/first");
  EXPECT_EQ(error.to_string(), "leaf 0: sentence 0; leaf 1: sentence 1; leaf 2: sentence 2");
}

TEST(ErrorList, CountsWhatIsTooMuchToSay) {
  ErrorList errors;
  for (int n = 0; n < 100000; ++n) errors.add(wrong(n));
  const std::string text = errors.result().error().to_string();
  EXPECT_TRUE(text.ends_with("leaf 199: sentence 199; and 99800 more")) << text.substr(0, 100);
}

}  // namespace
}  // namespace cairn
