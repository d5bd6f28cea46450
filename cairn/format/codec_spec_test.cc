// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/codec_spec.h"

#include <gtest/gtest.h>

namespace cairn::format {
namespace {

struct Spelling {
  const char* text;
  const char* name;
  const char* json;
};

TEST(CodecSpec, ParsesWhatPeopleType) {
  const Spelling spellings[] = {
      {"raw", "raw", "null"},
      {"zstd", "zstd:1", R"({"id":"zstd","level":1})"},
      {"zstd:3", "zstd:3", R"({"id":"zstd","level":3})"},
      {"zstd:-5", "zstd:-5", R"({"id":"zstd","level":-5})"},
      {"gzip", "gzip:1", R"({"id":"gzip","level":1})"},
      {"zlib:9", "zlib:9", R"({"id":"zlib","level":9})"},
      {"bz2", "bz2:1", R"({"id":"bz2","level":1})"},
      {"blosc", "blosc:lz4:5",
       R"({"id":"blosc","cname":"lz4","clevel":5,"shuffle":-1,"blocksize":0})"},
      {"blosc:zstd", "blosc:zstd:5",
       R"({"id":"blosc","cname":"zstd","clevel":5,"shuffle":-1,"blocksize":0})"},
      {"blosc:blosclz:9", "blosc:blosclz:9",
       R"({"id":"blosc","cname":"blosclz","clevel":9,"shuffle":-1,"blocksize":0})"},
  };
  for (const Spelling& spelling : spellings) {
    const auto spec = CodecSpec::parse(spelling.text);
    ASSERT_TRUE(spec) << spelling.text << ": " << spec.error().to_string();
    EXPECT_EQ(dump_json(spec->config()), spelling.json);
    EXPECT_EQ(spec->name(), spelling.name);
    EXPECT_EQ(*CodecSpec::parse(spec->name()), *spec);
  }
}

TEST(CodecSpec, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"", "lz4", "ZSTD", "snappy:3", ":", "raw:1", "lzma:fast"}) {
    EXPECT_EQ(CodecSpec::parse(text).error().reason(), "codec/unknown") << text;
  }
  for (const char* text :
       {"zstd:", "zstd:x", "zstd:1x", "zstd: 1", "zstd:23", "zstd:1:2", "bz2:0", "gzip:99999999999",
        "blosc:", "blosc:5", "blosc:lz4:", "blosc:lz4:10", "blosc:lz4:5:1"}) {
    EXPECT_EQ(CodecSpec::parse(text).error().reason(), "codec/bad-parameter") << text;
  }
}

TEST(CodecSpec, ZstdIsSpelledAsJaxSpellsIt) {
  EXPECT_EQ(dump_json(CodecSpec::zstd().config()), R"({"id":"zstd","level":1})");
  EXPECT_EQ(CodecSpec::zstd(7), *CodecSpec::parse("zstd:7"));
  EXPECT_TRUE(CodecSpec::raw().is_raw());
  EXPECT_FALSE(CodecSpec::zstd().is_raw());
}

TEST(CodecSpec, NamesWhatItHasNotChecked) {
  const Spelling spellings[] = {
      {"", "zstd", R"({"id":"zstd"})"},   {"", "snakeoil:3", R"({"id":"snakeoil","level":3})"},
      {"", "blosc", R"({"id":"blosc"})"}, {"", "blosc:9", R"({"id":"blosc","clevel":9})"},
      {"", "invalid", R"({"level":3})"},  {"", "invalid", R"({"id":3})"},
      {"", "invalid", R"("zstd")"},       {"", "zstd", R"({"id":"zstd","level":"3"})"},
  };
  for (const Spelling& spelling : spellings) {
    EXPECT_EQ(CodecSpec(*parse_json(spelling.json)).name(), spelling.name) << spelling.json;
  }
}

}  // namespace
}  // namespace cairn::format
