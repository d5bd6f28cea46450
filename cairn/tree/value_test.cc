// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/value.h"

#include <bit>
#include <limits>

#include <gtest/gtest.h>

#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }

Json parsed(std::string_view text) {
  auto json = parse_json(text);
  EXPECT_TRUE(json) << text;
  return json ? *std::move(json) : Json();
}

struct Example {
  Value value;
  std::string type, json, text;
};

std::vector<Example> examples() {
  return {
      {Value(), "none", R"({"type":"none"})", "None"},
      {Value(true), "bool", R"({"type":"bool","value":true})", "true"},
      {Value(Integer(-12)), "int", R"({"type":"int","value":"-12"})", "-12"},
      {Value(*Integer::parse("123456789012345678901234567890")), "int",
       R"({"type":"int","value":"123456789012345678901234567890"})",
       "123456789012345678901234567890"},
      {Value(0.1), "float", R"({"type":"float","value":"0.1"})", "0.1"},
      {Value(-0.0), "float", R"({"type":"float","value":"-0"})", "-0"},
      {Value(1e300), "float", R"({"type":"float","value":"1e+300"})", "1e+300"},
      {Value(from_bits(0xfff0000000000000)), "float", R"({"type":"float","value":"-inf"})", "-inf"},
      {Value(from_bits(0x7ff8000000000001)), "float",
       R"({"type":"float","value":"nan","bits":"7ff8000000000001"})", "nan"},
      {Value(std::complex<double>(1.5, -2)), "complex",
       R"({"type":"complex","value":[{"type":"float","value":"1.5"},)"
       R"({"type":"float","value":"-2"}]})",
       "(1.5-2j)"},
      {Value(std::complex<double>(0, 2)), "complex",
       R"({"type":"complex","value":[{"type":"float","value":"0"},{"type":"float","value":"2"}]})",
       "(0+2j)"},
      {Value("a\"\\\n\xc3\xa9"), "str", "{\"type\":\"str\",\"value\":\"a\\\"\\\\\\n\xc3\xa9\"}",
       "\"a\\\"\\\\\\x0a\xc3\xa9\""},
      {Value(Bytes{std::string("\x00\xff"
                               "a",
                               3)}),
       "bytes", R"({"type":"bytes","value":"AP9h"})", "b\"\\x00\\xffa\""},
  };
}

TEST(Value, IsWrittenAsTypedJsonAndReadBack) {
  for (const Example& example : examples()) {
    EXPECT_EQ(type_name(example.value), example.type);
    EXPECT_EQ(value_to_text(example.value), example.text);
    const auto json = value_to_json(example.value);
    ASSERT_TRUE(json) << example.json;
    EXPECT_EQ(dump_json(*json), example.json);
    const auto back = value_from_json(parsed(example.json));
    ASSERT_TRUE(back) << example.json;
    EXPECT_TRUE(same_value(*back, example.value)) << example.json;
  }
}

TEST(Value, SurvivesTextForAnyContent) {
  testing::Random random(2);
  for (int round = 0; round < 5000; ++round) {
    const Value value = testing::random_value(random);
    const auto json = value_to_json(value);
    ASSERT_TRUE(json) << value_to_text(value);
    const auto back = value_from_json(parsed(dump_json(*json)));
    ASSERT_TRUE(back) << dump_json(*json);
    ASSERT_TRUE(same_value(*back, value)) << dump_json(*json);
  }
}

TEST(Value, ComparesFloatsBitForBit) {
  const Value nan(from_bits(0x7ff8000000000000));
  EXPECT_TRUE(same_value(nan, nan));
  EXPECT_FALSE(same_value(nan, Value(from_bits(0x7ff8000000000001))));
  EXPECT_FALSE(same_value(Value(0.0), Value(-0.0)));
  EXPECT_FALSE(
      same_value(Value(std::complex<double>(1, 0.0)), Value(std::complex<double>(1, -0.0))));
  EXPECT_FALSE(same_value(Value(Integer(1)), Value(1.0)));
  EXPECT_FALSE(same_value(Value("a"), Value(Bytes{"a"})));
}

TEST(Value, RefusesWhatJsonCannotCarry) {
  const auto reason = [](const Value& value) -> std::string {
    const auto json = value_to_json(value);
    EXPECT_TRUE(json || json.error().code() == Code::kInvalidArgument);
    return std::string(json ? "" : json.error().reason());
  };
  EXPECT_EQ(reason("\xff"), "value/not-utf8");
  EXPECT_EQ(reason("\xed\xa0\x80"), "value/not-utf8");
  const std::string envelope = R"({"type":"str","value":""})";
  EXPECT_EQ(reason(std::string(kMaxValueBytes - envelope.size(), 'x')), "");
  EXPECT_EQ(reason(std::string(kMaxValueBytes - envelope.size() + 1, 'x')), "value/too-large");
  EXPECT_EQ(reason(std::string(kMaxValueBytes / 5, '\1')), "value/too-large");
  EXPECT_EQ(reason(std::string(kMaxValueBytes / 8, '\1')), "");
  EXPECT_EQ(reason(Bytes{std::string(kMaxValueBytes, '\0')}), "value/too-large");
  EXPECT_EQ(reason(*Integer::parse(std::string(kMaxValueBytes, '1'))), "value/too-large");
}

TEST(Value, RefusesDamagedJson) {
  const char* const damages[] = {
      "null",
      "{}",
      R"("int")",
      R"({"type":7})",
      R"({"type":"INT","value":"1"})",
      R"({"type":"int"})",
      R"({"type":"int","value":12})",
      R"({"type":"int","value":"012"})",
      R"({"type":"bool","value":"true"})",
      R"({"type":"bool"})",
      R"({"type":"float","value":1.5})",
      R"({"type":"float","value":""})",
      R"({"type":"float","value":"1.5 "})",
      R"({"type":"float","value":"1e999"})",
      R"({"type":"float","value":"NaN"})",
      R"({"type":"float","value":"nan"})",
      R"({"type":"float","value":"nan","bits":"3ff0000000000000"})",
      R"({"type":"float","value":"nan","bits":"7ff8"})",
      R"({"type":"float","value":"nan","bits":"7ff800000000000g"})",
      R"({"type":"complex","value":"1+2j"})",
      R"({"type":"complex","value":[{"type":"float","value":"1"}]})",
      R"({"type":"complex","value":[{"type":"float","value":"1"},2]})",
      R"({"type":"str","value":null})",
      R"({"type":"bytes","value":"A"})",
  };
  for (const char* damage : damages) {
    const auto value = value_from_json(parsed(damage));
    ASSERT_FALSE(value) << damage;
    EXPECT_EQ(value.error().reason(), "value/bad-json") << damage;
    EXPECT_EQ(value.error().code(), Code::kCorrupt) << damage;
  }
}

TEST(Value, IgnoresMembersOfLaterVersions) {
  const auto value = value_from_json(parsed(R"({"type":"int","unit":"s","value":"3"})"));
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, Value(Integer(3)));
}

TEST(Value, EscapesTextThatIsNoTextForAPerson) {
  EXPECT_EQ(value_to_text(Value("\xff\x1b[31m")), "\"\\xff\\x1b[31m\"");
}

TEST(Integer, TakesOnlyPlainDigits) {
  for (const char* digits : {"0", "7", "-7", "18446744073709551616"}) {
    ASSERT_TRUE(Integer::parse(digits)) << digits;
    EXPECT_EQ(Integer::parse(digits)->digits(), digits);
  }
  for (const char* digits : {"", "-", "+1", "007", "-0", "-01", " 1", "1 ", "0x1", "1.0", "1e3"}) {
    const auto integer = Integer::parse(digits);
    ASSERT_FALSE(integer) << digits;
    EXPECT_EQ(integer.error().reason(), "value/bad-integer");
  }
  EXPECT_FALSE(Integer::parse(std::string(kMaxValueBytes + 1, '1')));
}

TEST(Integer, FitsOrSaysThatItDoesNot) {
  EXPECT_EQ(Integer(INT64_MIN).to_int64(), INT64_MIN);
  EXPECT_EQ(Integer(INT64_MIN).to_uint64(), std::nullopt);
  EXPECT_EQ(Integer(UINT64_MAX).to_uint64(), UINT64_MAX);
  EXPECT_EQ(Integer(UINT64_MAX).to_int64(), std::nullopt);
  EXPECT_EQ(Integer::parse("9223372036854775808")->to_int64(), std::nullopt);
}

}  // namespace
}  // namespace cairn
