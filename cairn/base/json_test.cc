// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/json.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cairn/base/utf8.h"
#include "cairn/testing/scarce_memory.h"

namespace cairn {
namespace {

using namespace std::string_literals;

constexpr std::int64_t kMinInt = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t kMaxUint = std::numeric_limits<std::uint64_t>::max();

std::string nested(int depth, char open = '[', char close = ']') {
  const auto size = static_cast<std::size_t>(depth);
  return std::string(size, open) + std::string(size, close);
}

Json parse(std::string_view text, JsonLimits limits = {}) {
  Result<Json> json = parse_json(text, limits);
  EXPECT_TRUE(json) << text << ": " << json.error().to_string();
  return json ? *std::move(json) : Json();
}

void expect_refused(std::string_view text, std::string_view reason, JsonLimits limits = {}) {
  const Result<Json> json = parse_json(text, limits);
  ASSERT_FALSE(json) << text.substr(0, 80);
  EXPECT_EQ(json.error().reason(), reason) << text.substr(0, 80);
  EXPECT_EQ(json.error().code(), Code::kCorrupt);
}

TEST(Json, ParsesEveryKind) {
  const std::pair<const char*, Json> kTable[] = {
      {"null", Json()},
      {"true", true},
      {" false ", false},
      {"0", 0},
      {"-1", -1},
      {"2.0", 2.0},
      {"1e2", 100.0},
      {"-0", -0.0},
      {"9223372036854775808", std::uint64_t{1} << 63},
      {"18446744073709551615", kMaxUint},
      {"-9223372036854775808", kMinInt},
      {"18446744073709551616", Json::long_integer("18446744073709551616")},
      {"-9223372036854775809", Json::long_integer("-9223372036854775809")},
      {"18446744073709551616.0", 18446744073709551616.0},
      {"-1E20", -1e20},
      {"\"\"", ""},
      {R"("a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00")", "a\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80"},
      {"[]", Json::Array{}},
      {"{}", Json::Object{}},
      {"[1,[2],{}]", Json::Array{1, Json::Array{2}, Json::Object{}}},
      {R"({"b":1,"a":{"c":[]}})",
       Json::Object{{"b", 1}, {"a", Json::Object{{"c", Json::Array{}}}}}},
  };
  for (const auto& [text, value] : kTable) EXPECT_EQ(parse(text), value) << text;
}

TEST(Json, KeepsTheSignOfZero) {
  EXPECT_TRUE(std::signbit(*parse("-0").number()));
  EXPECT_TRUE(std::signbit(*parse("-0.0").number()));
  EXPECT_FALSE(std::signbit(*parse("0").number()));
  EXPECT_FALSE(parse("-0").integer());
  EXPECT_EQ(parse("-0").integral(), 0);
}

TEST(Json, TellsIntegersFromOtherNumbers) {
  const struct {
    Json json;
    std::optional<std::int64_t> integer;
    std::optional<std::uint64_t> unsigned_integer;
    std::optional<std::int64_t> integral;
    std::optional<double> number;
  } kTable[] = {
      {5, 5, 5, 5, 5.0},
      {-5, -5, {}, -5, -5.0},
      {kMaxUint, {}, kMaxUint, {}, 18446744073709551616.0},
      {kMinInt, kMinInt, {}, kMinInt, -0x1p63},
      {2.0, {}, {}, 2, 2.0},
      {2.5, {}, {}, {}, 2.5},
      {-0x1p63, {}, {}, kMinInt, -0x1p63},
      {0x1p63, {}, {}, {}, 0x1p63},
      {1e300, {}, {}, {}, 1e300},
      {Json::long_integer("-18446744073709551617"), {}, {}, {}, -18446744073709551616.0},
      {"5", {}, {}, {}, {}},
      {true, {}, {}, {}, {}},
      {Json(), {}, {}, {}, {}},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(row.json.integer(), row.integer) << dump_json(row.json);
    EXPECT_EQ(row.json.unsigned_integer(), row.unsigned_integer) << dump_json(row.json);
    EXPECT_EQ(row.json.integral(), row.integral) << dump_json(row.json);
    EXPECT_EQ(row.json.number(), row.number) << dump_json(row.json);
  }
  EXPECT_FALSE(Json(std::nan("")).integral());
  EXPECT_NE(Json(2), Json(2.0));
}

TEST(Json, NamesItsKinds) {
  const std::pair<Json, const char*> kTable[] = {
      {Json(), "null"}, {true, "boolean"},        {-1, "number"},
      {1, "number"},    {0.5, "number"},          {parse("123456789012345678901"), "number"},
      {"x", "text"},    {Json::Array{}, "array"}, {Json::Object{}, "object"}};
  for (const auto& [json, name] : kTable) EXPECT_EQ(json.kind_name(), name);
}

TEST(Json, FindsAndSetsMembers) {
  Json json;
  json.set("a", 1);
  json.set("b", 2);
  json.set("a", 3);
  EXPECT_EQ(json, (Json::Object{{"a", 3}, {"b", 2}}));
  EXPECT_EQ(*json.find("b"), Json(2));
  EXPECT_EQ(json.find("c"), nullptr);
  EXPECT_EQ(Json(1).find("a"), nullptr);
  EXPECT_EQ(Json(true).boolean(), true);
  EXPECT_FALSE(Json(1).boolean());
}

TEST(Json, RefusesTextThatIsNotJson) {
  for (const char* text : {"",         " ",          "nul",         "nulls",
                           "True",     "NaN",        "Infinity",    "-",
                           "01",       "1.",         ".5",          "+1",
                           "1e",       "0x1",        "1 2",         "[1,]",
                           "[1",       "]",          "[,1]",        "{\"a\"}",
                           "{\"a\":}", "{\"a\":1,}", "{a:1}",       "{1:2}",
                           "{\"a\":1", "'a'",        "\"a",         "\"\n\"",
                           "\"\\x\"",  "\"\\u12\"",  "\"\\ud800\"", "\"\\udc00\\ud800\"",
                           "// a\n1",  "1e999",      "[1e400]",     "[1}",
                           "{\"a\":1]"}) {
    expect_refused(text, "json/syntax");
  }
}

TEST(Json, RefusesTextThatIsNotUtf8) {
  for (const char* text :
       {"\"\xff\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\xff\xfe", "[1]\x80"}) {
    expect_refused(text, "json/utf8");
  }
}

TEST(Json, SaysWhereTheErrorIs) {
  const struct {
    const char* text;
    const char* message;
    JsonLimits limits = {};
  } kTable[] = {
      {"[1, x]", "not JSON at byte 5: invalid literal"},
      {"[1", "not JSON at byte 3: unexpected end of input"},
      {"[1e999]", "not JSON at byte 6: a number is too large for a double"},
      {"[\"\xff\"]", "JSON text is not UTF-8 at byte 2"},
      {"[[[1]]]", "JSON is nested deeper than 2 levels at byte 3", {.depth = 2}},
      {R"([{"a":1,"a":2}])",
       "JSON object that ends at byte 14 repeats member 'a'",
       {.repeated = Repeated::kRefuse}},
      {"[1, 2]", "JSON text has more than 2 values, up to byte 6 of 6", {.values = 2}},
      {"[1,2]", "JSON text of 5 bytes is above the limit of 4", {.bytes = 4}},
  };
  for (const auto& row : kTable) {
    const Result<Json> json = parse_json(row.text, row.limits);
    ASSERT_FALSE(json) << row.text;
    EXPECT_EQ(json.error().message(), row.message);
  }
}

TEST(Json, DoesNotQuoteTheTextAtLengthInMessages) {
  const std::string longest(1 << 20, 'a');
  std::string accents = "a";
  while (accents.size() < 1000) accents += "\xc3\xa9";
  const JsonLimits refuse = {.repeated = Repeated::kRefuse};
  for (const std::string& text : {"\"" + longest, "[" + std::string(1 << 20, '9') + "e9]",
                                  "nul" + longest, "{\"" + longest + "\":1,\"" + longest + "\":1}",
                                  "{\"" + accents + "\":1,\"" + accents + "\":1}"}) {
    const Result<Json> json = parse_json(text, refuse);
    ASSERT_FALSE(json);
    EXPECT_LT(json.error().message().size(), 300u);
    EXPECT_TRUE(is_utf8(json.error().message()));
  }
}

TEST(Json, AcceptsAByteOrderMarkAndNulsAtTheEndOnly) {
  EXPECT_EQ(parse("\xef\xbb\xbf[1]"), Json(Json::Array{1}));
  EXPECT_EQ(parse("[1]\0\0\0"s), Json(Json::Array{1}));
  for (const auto& text :
       {"[1]\0x"s, "[1]\0[2]"s, "[1]\0 "s, "[1,\0 2]"s, "\"a\0b\""s, "\0"s, "[1]\xef\xbb\xbf"s}) {
    expect_refused(text, "json/syntax");
  }
}

TEST(Json, RefusesTextAboveTheLimitOfBytes) {
  EXPECT_EQ(parse("[1]", {.bytes = 3}), Json(Json::Array{1}));
  expect_refused("[1] ", "json/too-large", {.bytes = 3});
}

TEST(Json, RefusesMoreValuesThanTheLimitAllows) {
  const struct {
    const char* text;
    std::size_t values;
  } kTable[] = {
      {"0", 1},           {"[]", 1},
      {"{}", 1},          {"[1,2,3]", 4},
      {"[[],[[]]]", 4},   {R"({"a":1,"b":2})", 5},
      {"[null,\"\"]", 3}, {R"({"a":{"b":[1,2]},"a":3})", 9},
  };
  for (const auto& row : kTable) {
    for (const Repeated repeated : {Repeated::kKeep, Repeated::kLastWins}) {
      EXPECT_TRUE(parse_json(row.text, {.values = row.values, .repeated = repeated})) << row.text;
      expect_refused(row.text, "json/too-many-values",
                     {.values = row.values - 1, .repeated = repeated});
    }
    const Json json = *parse_json(row.text, {.repeated = Repeated::kKeep});
    EXPECT_TRUE(dump_json_file(json, {.values = row.values})) << row.text;
    const auto checked = dump_json_file(json, {.values = row.values - 1});
    ASSERT_FALSE(checked) << row.text;
    EXPECT_EQ(checked.error().reason(), "json/too-many-values");
  }
}

TEST(Json, KeepsTheMemoryOfManyValuesWithinTheLimit) {
  std::string zeros = "[0";
  while (zeros.size() < 8u << 20) zeros += ",0";
  expect_refused(zeros + "]", "json/too-many-values");
}

TEST(Json, SaysBeforeWritingThatTheTextWouldBeTooDeep) {
  const Json json = *parse_json(nested(64));
  EXPECT_TRUE(dump_json_file(json, {.depth = 64}));
  const auto checked = dump_json_file(json, {.depth = 63});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().reason(), "json/too-deep");
}

TEST(Json, SaysBeforeWritingThatTheTextWouldBeTooLong) {
  const Json json = *parse_json("[1,2]");
  EXPECT_EQ(*dump_json_file(json, {.bytes = 6}), "[1,2]\n");
  const auto text = dump_json_file(json, {.bytes = 5});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().reason(), "json/too-large");
}

TEST(Json, RefusesNestingAboveTheLimit) {
  EXPECT_TRUE(parse_json(nested(64)));
  expect_refused(nested(65), "json/too-deep");
  expect_refused(nested(1'000'000), "json/too-deep");
  expect_refused(std::string(1'000'000, '['), "json/too-deep");
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  expect_refused(objects, "json/too-deep");
  EXPECT_EQ(parse("1", {.depth = 0}), Json(1));
  expect_refused("[]", "json/too-deep", {.depth = 0});
  EXPECT_TRUE(parse_json("[[],[],[[]]]", {.depth = 3})) << "siblings do not count";
}

TEST(Json, TreatsRepeatedMembersAsAsked) {
  constexpr std::string_view kText = R"({"z":0,"a":1,"b":{"c":1,"c":2},"a":2,"d":3,"a":4})";
  EXPECT_EQ(parse(kText),
            (Json::Object{{"z", 0}, {"a", 4}, {"b", Json::Object{{"c", 2}}}, {"d", 3}}));
  const Json all = parse(kText, {.repeated = Repeated::kKeep});
  EXPECT_EQ(all.object()->size(), 6u);
  EXPECT_EQ(*all.find("a"), Json(4));
  expect_refused(kText, "json/repeated-member", {.repeated = Repeated::kRefuse});
  expect_refused(R"([{"a":{"":0,"":1}}])", "json/repeated-member", {.repeated = Repeated::kRefuse});
  expect_refused(R"({"a":0,"\u0061":1})", "json/repeated-member", {.repeated = Repeated::kRefuse});
  EXPECT_TRUE(parse_json(R"({"b":{"a":1},"a":{"a":1}})", {.repeated = Repeated::kRefuse}));
}

// Quadratic work on 200,000 members would take minutes.
TEST(Json, HandlesObjectsWithManyMembers) {
  constexpr int kMembers = 100'000;
  std::string text = "{";
  for (int i = 0; i < 2 * kMembers; ++i) {
    text += "\"" + std::to_string(i * 7919LL % kMembers) + "\":" + std::to_string(i) + ",";
  }
  text.back() = '}';
  const Json merged = parse(text);
  ASSERT_EQ(merged.object()->size(), static_cast<std::size_t>(kMembers));
  for (int i = 0; i < kMembers; ++i) {
    const auto& [name, value] = (*merged.object())[static_cast<std::size_t>(i)];
    ASSERT_EQ(name, std::to_string(i * 7919LL % kMembers));
    ASSERT_EQ(value.integer(), i + kMembers);
  }
  expect_refused(text, "json/repeated-member", {.repeated = Repeated::kRefuse});
}

TEST(Json, ThatCannotBeCopiedForLackOfMemoryHarmsNothing) {
  const Json json = parse(R"({"a name that is too long to lie in place":
      ["a text that is too long to lie in place", {"n": 1}, {}]})");
  const auto failures = testing::fail_each_allocation([&] {
    const Json copy = json;
    Json other(Json::Array{copy});
    other = copy;
  });
  EXPECT_GT(failures, 10U);
}

}  // namespace
}  // namespace cairn
