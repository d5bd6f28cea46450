// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/result.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "cairn/base/utf8.h"

namespace cairn {
namespace {

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return Error(Code::kInvalidArgument, "digit/none", "not a digit");
  return c - '0';
}

Result<int> sum_digits(std::string_view text) {
  int sum = 0;
  for (const char c : text) {
    CAIRN_TRY_ASSIGN(const int digit, parse_digit(c));
    sum += digit;
  }
  return sum;
}

Result<void> check_digits(std::string_view text) {
  CAIRN_TRY(sum_digits(text));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*parse_digit('7'), 7);
  const Result<int> failed = parse_digit('x');
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(failed.error().reason(), "digit/none");
  EXPECT_EQ(parse_digit('x').value_or(-1), -1);
  EXPECT_EQ(parse_digit('3').value_or(-1), 3);
}

TEST(Result, MacrosPassValuesOnAndReturnErrors) {
  EXPECT_EQ(*sum_digits("1234"), 10);
  EXPECT_EQ(sum_digits("12x4").error().reason(), "digit/none");
  EXPECT_TRUE(check_digits("12"));
  EXPECT_EQ(check_digits("x").error().reason(), "digit/none");
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, BuildsThePlaceOnlyForAnError) {
  int built = 0;
  const auto place = [&] {
    ++built;
    return std::string("leaf w");
  };
  EXPECT_TRUE(parse_digit('1').in(place));
  EXPECT_EQ(built, 0);
  EXPECT_EQ(parse_digit('x').in(place).error().where(), "leaf w");
  EXPECT_EQ(built, 1);
  EXPECT_EQ(check_digits("x").in("text").error().where(), "text");
}

TEST(Error, PutsTheOuterPlaceFirst) {
  const Error error =
      Error(Code::kCorrupt, "zarr/short", "5 bytes missing").in("chunk 0.1").in("leaf w");
  EXPECT_EQ(error.where(), "leaf w: chunk 0.1");
  EXPECT_EQ(error.message(), "5 bytes missing");
  EXPECT_EQ(error.to_string(), "leaf w: chunk 0.1: 5 bytes missing");
  EXPECT_EQ(Error(Code::kCorrupt, "zarr/short", "short").to_string(), "short");
}

TEST(Error, ShortensAVeryLongPlace) {
  std::string name;
  while (name.size() < 1'000'000) name += "\xe4\xb8\xad";
  const std::string where =
      Error(Code::kCorrupt, "a/b", "damaged").in("leaf " + name + ": file").where();
  EXPECT_LT(where.size(), 10'000U);
  EXPECT_TRUE(where.starts_with("leaf \xe4\xb8\xad"));
  EXPECT_TRUE(where.ends_with("\xe4\xb8\xad: file"));
  EXPECT_TRUE(is_utf8(where));
}

TEST(Error, ContextDoesNotReachEarlierCopies) {
  Error original(Code::kInternal, "a/b", "text");
  const Error copy = original;
  const Error moved = std::move(original).in("place");
  EXPECT_EQ(copy.where(), "");
  EXPECT_EQ(moved.where(), "place");
}

TEST(Error, KnowsWhereItWasMade) {
  const Error error(Code::kInternal, "a/b", "text");
  EXPECT_EQ(error.origin().line(), __LINE__ - 1);
  EXPECT_TRUE(std::string_view(error.origin().file_name()).ends_with("result_test.cc"));
}

TEST(Error, EveryCodeHasItsOwnName) {
  const std::string_view names[] = {"invalid_argument",    "not_found",     "already_exists",
                                    "failed_precondition", "corrupt",       "unavailable",
                                    "deadline_exceeded",   "cancelled",     "permission_denied",
                                    "resource_exhausted",  "unimplemented", "internal"};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    EXPECT_EQ(code_name(static_cast<Code>(i)), names[i]);
  }
}

}  // namespace
}  // namespace cairn
