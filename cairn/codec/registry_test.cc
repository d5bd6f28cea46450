// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::codec {
namespace {

/// "ok", or the reason.
std::string outcome(const std::string& config) {
  const auto json = parse_json(config);
  EXPECT_TRUE(json) << config;
  const auto codec = make_codec(*json, 4);
  if (codec) return "ok";
  EXPECT_EQ(codec.error().code(), Code::kInvalidArgument);
  return std::string(codec.error().reason());
}

TEST(Registry, NamesItsCodecs) {
  EXPECT_THAT(codec_names(), ::testing::ElementsAre("blosc", "bz2", "gzip", "zlib", "zstd"));
}

TEST(Registry, RefusesWhatIsNoCompressorObject) {
  EXPECT_EQ(outcome("null"), "codec/not-an-object");
  EXPECT_EQ(outcome(R"("zstd")"), "codec/not-an-object");
  EXPECT_EQ(outcome(R"(["zstd"])"), "codec/not-an-object");
  EXPECT_EQ(outcome("{}"), "codec/no-id");
  EXPECT_EQ(outcome(R"({"level":1})"), "codec/no-id");
  EXPECT_EQ(outcome(R"({"id":1})"), "codec/no-id");
  EXPECT_EQ(outcome(R"({"id":"lz4"})"), "codec/unknown");
  EXPECT_EQ(outcome(R"({"id":"ZSTD"})"), "codec/unknown");
  EXPECT_EQ(outcome(R"({"id":""})"), "codec/unknown");
}

TEST(Registry, ListsTheCodecsThereAreForAnUnknownOne) {
  const auto codec = make_codec(*parse_json(R"({"id":"snakeoil"})"), 4);
  ASSERT_FALSE(codec);
  EXPECT_EQ(codec.error().message(),
            "there is no codec 'snakeoil'; there are: blosc, bz2, gzip, zlib, zstd");
}

struct Members {
  const char* id;
  std::vector<const char*> good;
  std::vector<const char*> bad;
};

TEST(Registry, ReadsParametersStrictly) {
  const Members table[] = {
      {"zstd",
       {R"("level":-131072)", R"("level":22)", R"("level":3.0)", R"("checksum":true)",
        R"("level":0,"checksum":false)"},
       {R"("level":-131073)", R"("level":23)", R"("level":"1")", R"("level":1.5)",
        R"("level":null)", R"("level":true)", R"("checksum":1)", R"("checksum":null)",
        R"("clevel":1)", R"("level":1,"x":1)"}},
      {"gzip",
       {R"("level":0)", R"("level":9)"},
       {R"("level":-1)", R"("level":10)", R"("checksum":true)", R"("Level":1)"}},
      {"zlib", {R"("level":0)", R"("level":9)"}, {R"("level":-2)", R"("level":10)", R"("x":1)"}},
      {"bz2", {R"("level":1)", R"("level":9)"}, {R"("level":0)", R"("level":10)", R"("x":1)"}},
      {"blosc",
       {R"("cname":"zstd","clevel":0,"shuffle":2,"blocksize":0)", R"("cname":"snappy")",
        R"("clevel":9)", R"("shuffle":-1)", R"("blocksize":2147483647)"},
       {R"("cname":"LZ4")", R"("cname":null)", R"("cname":1)", R"("cname":"")", R"("clevel":10)",
        R"("clevel":-1)", R"("shuffle":3)", R"("shuffle":-2)", R"("blocksize":-1)",
        R"("blocksize":2147483648)", R"("blocksize":18446744073709551615)", R"("level":1)"}},
  };
  for (const Members& row : table) {
    const std::string start = std::string(R"({"id":")") + row.id + '"';
    EXPECT_EQ(outcome(start + "}"), "ok") << row.id;
    for (const char* members : row.good) {
      EXPECT_EQ(outcome(start + "," + members + "}"), "ok") << row.id << " " << members;
    }
    for (const char* members : row.bad) {
      EXPECT_EQ(outcome(start + "," + members + "}"), "codec/bad-parameter")
          << row.id << " " << members;
    }
  }
}

TEST(Registry, SaysWhichParameterAndItsRange) {
  const auto codec = make_codec(*parse_json(R"({"id":"zstd","level":23})"), 4);
  ASSERT_FALSE(codec);
  EXPECT_EQ(codec.error().message(),
            "compressor zstd: 'level' is 23; it must be an integer from -131072 to 22");
}

struct Effect {
  const char* one;
  const char* other;
};

// No parameter is ignored: two values of it store the same bytes in two ways.
TEST(Registry, EveryParameterHasAnEffect) {
  std::string raw;
  for (std::uint32_t i = 0; i < 60'000; ++i) {
    const std::uint32_t value = i * i % 1009 + (i >> 3);
    raw.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  const Effect effects[] = {
      {R"({"id":"zstd","level":1})", R"({"id":"zstd","level":9})"},
      {R"({"id":"zstd","checksum":false})", R"({"id":"zstd","checksum":true})"},
      {R"({"id":"gzip","level":1})", R"({"id":"gzip","level":9})"},
      {R"({"id":"zlib","level":0})", R"({"id":"zlib","level":1})"},
      {R"({"id":"bz2","level":1})", R"({"id":"bz2","level":9})"},
      {R"({"id":"blosc","cname":"lz4"})", R"({"id":"blosc","cname":"lz4hc"})"},
      {R"({"id":"blosc","cname":"zlib","clevel":1})",
       R"({"id":"blosc","cname":"zlib","clevel":9})"},
      {R"({"id":"blosc","shuffle":0})", R"({"id":"blosc","shuffle":1})"},
      {R"({"id":"blosc","shuffle":1})", R"({"id":"blosc","shuffle":2})"},
      {R"({"id":"blosc","blocksize":0})", R"({"id":"blosc","blocksize":1024})"},
  };
  for (const Effect& effect : effects) {
    const auto one = (*make_codec(*parse_json(effect.one), 4))->encode(as_bytes(raw));
    const auto other = (*make_codec(*parse_json(effect.other), 4))->encode(as_bytes(raw));
    EXPECT_NE(as_text(one->bytes()), as_text(other->bytes())) << effect.other;
  }
}

TEST(Registry, LeftOutParametersAreThoseOfTensorStore) {
  const std::string raw(5000, 'a');
  const Effect equals[] = {
      {R"({"id":"zstd"})", R"({"id":"zstd","level":1})"},
      {R"({"id":"gzip"})", R"({"id":"gzip","level":1})"},
      {R"({"id":"zlib"})", R"({"id":"zlib","level":1})"},
      {R"({"id":"bz2"})", R"({"id":"bz2","level":1})"},
      {R"({"id":"blosc"})",
       R"({"id":"blosc","cname":"lz4","clevel":5,"shuffle":-1,"blocksize":0})"},
  };
  for (const Effect& equal : equals) {
    const auto one = (*make_codec(*parse_json(equal.one), 4))->encode(as_bytes(raw));
    const auto other = (*make_codec(*parse_json(equal.other), 4))->encode(as_bytes(raw));
    EXPECT_EQ(as_text(one->bytes()), as_text(other->bytes())) << equal.other;
  }
}

}  // namespace
}  // namespace cairn::codec
