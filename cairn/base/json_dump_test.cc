// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cairn/base/json.h"

namespace cairn {
namespace {

const JsonStyle kStyles[] = {{},
                             {.indent = 2},
                             {.ascii = true},
                             {.python_spaces = true},
                             {.indent = 4, .ascii = true, .python_spaces = true}};

const Json& sample() {
  static const Json json = Json::Object{{"a", Json::Array{1, 2.5, Json::Array{}, Json::Object{}}},
                                        {"b", Json()},
                                        {"c", Json::Object{{"d", true}}}};
  return json;
}

TEST(DumpJson, WritesOneLine) {
  EXPECT_EQ(dump_json(sample()), R"({"a":[1,2.5,[],{}],"b":null,"c":{"d":true}})");
  EXPECT_EQ(dump_json(sample(), {.python_spaces = true}),
            R"({"a": [1, 2.5, [], {}], "b": null, "c": {"d": true}})");
}

// What json.dumps(value, indent=2) of Python gives.
TEST(DumpJson, IndentsAsPython) {
  constexpr std::string_view kText = R"({
  "a": [
    1,
    2.5,
    [],
    {}
  ],
  "b": null,
  "c": {
    "d": true
  }
})";
  EXPECT_EQ(dump_json(sample(), {.indent = 2}), kText);
  EXPECT_EQ(dump_json(sample(), {.indent = 2, .python_spaces = true}), kText);
  EXPECT_EQ(dump_json(Json::Array{}, {.indent = 2}), "[]");
  EXPECT_EQ(dump_json(Json::Object{}, {.indent = 2}), "{}");
}

TEST(DumpJson, WritesFloatsAsPython) {
  const std::pair<double, const char*> kTable[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {-2.0, "-2.0"},
      {0.1, "0.1"},
      {100000.0, "100000.0"},
      {123456789.125, "123456789.125"},
      {1e15, "1000000000000000.0"},
      {9999999999999998.0, "9999999999999998.0"},
      {1e16, "1e+16"},
      {1e20, "1e+20"},
      {1.5e300, "1.5e+300"},
      {1e-4, "0.0001"},
      {0.00012345, "0.00012345"},
      {1e-5, "1e-05"},
      {1.5e-7, "1.5e-07"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {2.2250738585072014e-308, "2.2250738585072014e-308"},
      {1.0 / 3, "0.3333333333333333"},
      {std::numeric_limits<double>::infinity(), "null"},
      {std::nan(""), "null"},
  };
  for (const auto& [number, text] : kTable) EXPECT_EQ(dump_json(number), text);
}

TEST(DumpJson, WritesWholeIntegers) {
  EXPECT_EQ(dump_json(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(dump_json(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(dump_json(0), "0");
}

TEST(DumpJson, EscapesText) {
  const struct {
    std::string text;
    const char* plain;
    const char* ascii;
  } kTable[] = {
      {"a\"b\\c/", R"("a\"b\\c/")", R"("a\"b\\c/")"},
      {"\b\f\n\r\t", R"("\b\f\n\r\t")", R"("\b\f\n\r\t")"},
      {std::string("\0\x1f\x7f", 3), "\"\\u0000\\u001f\x7f\"", R"("\u0000\u001f\u007f")"},
      {"\xc3\xa9", "\"\xc3\xa9\"", R"("\u00e9")"},
      {"\xe2\x82\xac", "\"\xe2\x82\xac\"", R"("\u20ac")"},
      {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"", R"("\ud83d\ude00")"},
      {"a\xffz\xc3", "\"a\xef\xbf\xbdz\xef\xbf\xbd\"", R"("a\ufffdz\ufffd")"},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(dump_json(row.text), row.plain);
    EXPECT_EQ(dump_json(row.text, {.ascii = true}), row.ascii);
    EXPECT_EQ(dump_json(Json::Object{{row.text, 1}}), "{" + std::string(row.plain) + ":1}");
  }
}

class RandomJson {
 public:
  explicit RandomJson(std::uint32_t seed) : random_(seed) {}

  Json container() { return random_() % 2 == 0 ? array(0) : object(0); }

 private:
  Json value(int depth) {
    switch (random_() % (depth < 5 ? 9 : 7)) {
      case 0:
        return {};
      case 1:
        return random_() % 2 == 0;
      case 2:
        return static_cast<std::int64_t>(random_() >> (random_() % 64));
      case 3:
        return static_cast<std::uint64_t>(random_() >> (random_() % 64));
      case 4:
        return -static_cast<std::int64_t>(random_() >> (1 + random_() % 63));
      case 5:
        return real();
      case 6:
        return text();
      case 7:
        return array(depth);
      default:
        return object(depth);
    }
  }

  // Any finite double, and often a round one.
  double real() {
    if (random_() % 3 == 0) return static_cast<double>(random_() % 1000) / 8;
    const std::uint64_t bits = random_();
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    return std::isfinite(number) ? number : -0.0;
  }
  std::string text() {
    std::string text;
    for (std::size_t left = random_() % 12; left > 0; --left) {
      const std::uint64_t kind = random_() % 8;
      if (kind == 0)
        text += static_cast<char>(random_() % 0x20);
      else if (kind == 1)
        text += "\xc3\xa9";
      else if (kind == 2)
        text += "\xef\xbf\xbf";
      else if (kind == 3)
        text += "\xf4\x8f\xbf\xbf";
      else
        text += static_cast<char>(0x20 + random_() % 0x60);
    }
    return text;
  }
  Json array(int depth) {
    Json::Array items;
    for (std::size_t left = random_() % 6; left > 0; --left) items.push_back(value(depth + 1));
    return items;
  }
  Json object(int depth) {
    Json::Object members;
    for (std::size_t left = random_() % 6; left > 0; --left) {
      members.emplace_back(text() + std::to_string(left), value(depth + 1));
    }
    return members;
  }

  std::mt19937_64 random_;
};

TEST(DumpJson, IsParsedBackEqualInEveryStyle) {
  RandomJson random(5);
  for (int round = 0; round < 3000; ++round) {
    const Json json = random.container();
    for (const JsonStyle& style : kStyles) {
      const std::string text = dump_json(json, style);
      const Result<Json> back = parse_json(text, {.repeated = Repeated::kKeep});
      ASSERT_TRUE(back) << text;
      ASSERT_EQ(*back, json) << text;
      // Equality does not see the sign of a zero; the text does.
      ASSERT_EQ(dump_json(*back, style), text);
      const std::string_view foreign = style.ascii ? "\xc3\xef\xf4" : "";
      ASSERT_EQ(text.find_first_of(foreign), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace cairn
