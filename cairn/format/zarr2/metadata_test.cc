// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/zarr2/metadata.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/base/json.h"
#include "cairn/format/zarr2/dtype.h"

namespace cairn::format::zarr2 {
namespace {

using ::testing::HasSubstr;

// A valid .zarray with one member changed; an empty text drops it.
std::string with(std::string_view name, std::string_view value) {
  Json::Object members = {
      {"zarr_format", 2}, {"shape", Json::Array{4, 6}}, {"chunks", Json::Array{2, 3}},
      {"dtype", "<i4"},   {"compressor", nullptr},      {"fill_value", 0},
      {"order", "C"},     {"filters", nullptr},         {"dimension_separator", "."}};
  std::string text;
  for (const auto& [member, original] : members) {
    const std::string shown = member == name ? std::string(value) : dump_json(original);
    if (!shown.empty()) text += (text.empty() ? "{\"" : ",\"") + member + "\":" + shown;
  }
  return text + "}";
}

std::string reason(const std::string& text) {
  const auto array = parse_metadata(text);
  return array ? "accepted" : std::string(array.error().reason());
}

struct Change {
  const char* member;
  const char* value;
  const char* reason;
};

TEST(Zarray, ReadsEveryMember) {
  const auto array = parse_metadata(
      R"({"zarr_format":2,"shape":[7,10],"chunks":[3,4],"dtype":">f8","compressor":null,)"
      R"("fill_value":1.5,"order":"F","filters":[],"dimension_separator":"/"})");
  ASSERT_TRUE(array) << array.error().to_string();
  EXPECT_EQ(array->shape, (Shape{7, 10}));
  EXPECT_EQ(array->chunk_shape, (Shape{3, 4}));
  EXPECT_EQ(array->dtype, DType::kFloat64);
  EXPECT_TRUE(array->big_endian);
  EXPECT_TRUE(array->fortran_order);
  EXPECT_EQ(array->separator, '/');
  EXPECT_EQ(array->fill, std::string("\0\0\0\0\0\0\xf8\x3f", 8))
      << "little endian, whatever the file";
  EXPECT_TRUE(array->codec.is_raw());
  EXPECT_EQ(array->key, "");
  EXPECT_FALSE(array->packed);
  EXPECT_FALSE(array->one_object);
}

TEST(Zarray, OneByteHasNoByteOrder) {
  const auto array = parse_metadata(with("dtype", "\">u1\""));
  ASSERT_TRUE(array);
  EXPECT_FALSE(array->big_endian);
  EXPECT_TRUE(array->plain());
}

TEST(Zarray, KeepsTheCompressor) {
  const auto array = parse_metadata(with("compressor", R"({"id":"zstd","level":1})"));
  ASSERT_TRUE(array) << array.error().to_string();
  EXPECT_EQ(array->codec, CodecSpec::zstd(1));
}

// zarr-python writes these; what is kept are levels that TensorStore knows too.
TEST(Zarray, ReadsLevelsThatStandForAnother) {
  struct Row {
    const char* written;
    const char* kept;
  };
  constexpr Row kRows[] = {
      {R"({"id":"zlib","level":-1})", R"({"id":"zlib","level":6})"},
      {R"({"id":"gzip","level":-1})", R"({"id":"gzip","level":6})"},
      {R"({"id":"zstd","level":23})", R"({"id":"zstd","level":22})"},
      {R"({"id":"zstd","level":-200000})", R"({"id":"zstd","level":-131072})"},
      {R"({"id":"zstd","level":-1})", R"({"id":"zstd","level":-1})"},
  };
  for (const Row& row : kRows) {
    const auto array = parse_metadata(with("compressor", row.written));
    ASSERT_TRUE(array) << row.written << " " << array.error().to_string();
    EXPECT_EQ(dump_json(array->codec.config()), row.kept);
  }
}

TEST(Zarray, NullFillValueIsZeros) {
  const auto array = parse_metadata(with("fill_value", "null"));
  ASSERT_TRUE(array);
  EXPECT_EQ(array->fill, "");
}

TEST(Zarray, AcceptsHarmlessSpellings) {
  constexpr Change kChanges[] = {
      {"zarr_format", "2.0", ""},      {"shape", "[4.0,6]", ""}, {"chunks", "[2,3e0]", ""},
      {"compressor", "", ""},          {"filters", "", ""},      {"filters", "[]", ""},
      {"dimension_separator", "", ""}, {"shape", "[0,6]", ""},   {"dtype", "\"<i1\"", ""},
      {"dtype", "\">u1\"", ""},        {"dtype", "\"<b1\"", ""},
  };
  for (const Change& change : kChanges) {
    std::string text = with(change.member, change.value);
    if (text.find("b1") != std::string::npos) text.replace(text.find(":0,"), 3, ":false,");
    EXPECT_EQ(reason(text), "accepted") << text;
  }
  const std::string plain = with("", "");
  EXPECT_EQ(reason("\xef\xbb\xbf" + plain), "accepted");
  EXPECT_EQ(reason(plain + std::string(3, '\0')), "accepted");
  EXPECT_EQ(reason(" \n" + plain + "\n"), "accepted");
  EXPECT_EQ(reason(plain.substr(0, plain.size() - 1) + R"(,"x":{"a":[1]}})"), "accepted");
}

TEST(Zarray, TheLastOfRepeatedMembersWins) {
  const std::string plain = with("", "");
  const auto array = parse_metadata(plain.substr(0, plain.size() - 1) + R"(,"shape":[9,9]})");
  ASSERT_TRUE(array);
  EXPECT_EQ(array->shape, (Shape{9, 9}));
}

TEST(Zarray, RefusesEachDamageByItsOwnReason) {
  constexpr Change kChanges[] = {
      {"zarr_format", "", "zarr2/missing-zarr_format"},
      {"shape", "", "zarr2/missing-shape"},
      {"chunks", "", "zarr2/missing-chunks"},
      {"dtype", "", "zarr2/missing-dtype"},
      {"fill_value", "", "zarr2/missing-fill_value"},
      {"order", "", "zarr2/missing-order"},
      {"zarr_format", "3", "zarr2/format-version"},
      {"zarr_format", "null", "zarr2/format-version"},
      {"shape", "{}", "zarr2/shape-type"},
      {"shape", "[4,null]", "zarr2/shape-type"},
      {"shape", "[4,true]", "zarr2/shape-type"},
      {"shape", "[4,-1]", "zarr2/shape-negative"},
      {"shape", "[4,-1e30]", "zarr2/shape-negative"},
      {"shape", "[4,9223372036854775808]", "zarr2/shape-overflow"},
      {"shape", "[4,1e300]", "zarr2/shape-overflow"},
      {"shape", "[1073741824,1073741824]", "zarr2/shape-overflow"},
      {"shape", "[0,9223372036854775807]", "zarr2/shape-overflow"},
      {"shape", "[4194305,6]", "zarr2/too-many-chunks"},
      {"chunks", "\"[2,3]\"", "zarr2/chunk-type"},
      {"chunks", "[2,0]", "zarr2/chunk-zero"},
      {"chunks", "[2,-0.0]", "zarr2/chunk-zero"},
      {"chunks", "[2,-3]", "zarr2/chunk-negative"},
      {"chunks", "[2,3,4]", "zarr2/chunk-rank"},
      {"chunks", "[]", "zarr2/chunk-rank"},
      {"chunks", "[1099511627776,1099511627776]", "zarr2/chunk-overflow"},
      {"chunks", "[1,1e19]", "zarr2/chunk-overflow"},
      {"dtype", "\"|V4\"", "zarr2/dtype-void"},
      {"dtype", "\"|S4\"", "zarr2/dtype-bytes"},
      {"dtype", "\"<U4\"", "zarr2/dtype-unicode"},
      {"dtype", "\"<M8[ns]\"", "zarr2/dtype-datetime"},
      {"dtype", "\"<m8[s]\"", "zarr2/dtype-datetime"},
      {"dtype", "\"|O\"", "zarr2/dtype-object"},
      {"dtype", "[[\"a\",\"<i4\"]]", "zarr2/dtype-structured"},
      {"dtype", "null", "zarr2/dtype-type"},
      {"dtype", "\"i4\"", "zarr2/dtype-byte-order"},
      {"dtype", "\"|i4\"", "zarr2/dtype-byte-order"},
      {"dtype", "\"<f3\"", "zarr2/dtype-size"},
      {"dtype", "\"<c\"", "zarr2/dtype-size"},
      {"dtype", "\"<\"", "zarr2/dtype-unknown"},
      {"dtype", "\"=i4\"", "zarr2/dtype-unknown"},
      {"dtype", "\"int32\"", "zarr2/dtype-unknown"},
      {"dtype", "\"<bfloat16\"", "zarr2/dtype-size"},
      {"dtype", "\"uint2\"", "zarr2/dtype-unsupported"},
      {"dtype", "\"uint4\"", "zarr2/dtype-unsupported"},
      {"dtype", "\"float8_e4m3\"", "zarr2/dtype-unsupported"},
      {"dtype", "\"float6_e2m3fn\"", "zarr2/dtype-unsupported"},
      {"order", "\"c\"", "zarr2/order"},
      {"order", "0", "zarr2/order"},
      {"filters", "[{\"id\":\"delta\"}]", "zarr2/filters"},
      {"filters", "{}", "zarr2/filters-type"},
      {"dimension_separator", "null", "zarr2/separator"},
      {"dimension_separator", "\"\"", "zarr2/separator"},
      {"dimension_separator", "\"..\"", "zarr2/separator"},
      {"compressor", "\"zstd\"", "zarr2/compressor-type"},
      {"compressor", "{}", "zarr2/compressor-no-id"},
      {"compressor", "{\"id\":\"lz4\"}", "zarr2/compressor-unknown"},
      {"compressor", "{\"id\":\"zstd\",\"x\":1}", "zarr2/compressor-parameter"},
      {"fill_value", "0.5", "zarr2/fill-fraction"},
      {"fill_value", "{}", "zarr2/fill-type"},
  };
  for (const Change& change : kChanges) {
    EXPECT_EQ(reason(with(change.member, change.value)), change.reason)
        << change.member << " " << change.value;
  }
}

TEST(Zarray, RefusesTextThatIsNoObject) {
  EXPECT_EQ(reason(""), "zarr2/empty");
  EXPECT_EQ(reason("{"), "zarr2/not-json");
  EXPECT_EQ(reason("{}x"), "zarr2/not-json");
  EXPECT_EQ(reason("{\"a\":\"\xff\"}"), "zarr2/not-utf8");
  EXPECT_EQ(reason("[]"), "zarr2/not-an-object");
  EXPECT_EQ(reason("null"), "zarr2/not-an-object");
  EXPECT_EQ(reason(std::string(1000, '[')), "zarr2/too-deep");
  EXPECT_EQ(reason(std::string(kMaxMetadataBytes + 1, ' ')), "zarr2/too-large");
}

TEST(Zarray, RefusesMoreDimensionsThanAnybodyHas) {
  std::string ones = "[1";
  for (std::size_t i = 0; i < kMaxRank; ++i) ones += ",1";
  EXPECT_EQ(reason(with("shape", ones + "]")), "zarr2/rank");
}

TEST(Zarray, AcceptsAsManyChunksAsThereMayBe) {
  EXPECT_EQ(reason(with("shape", "[4194304,6]")), "accepted");
}

// Only what must be in memory whole is capped: parts of a raw chunk can be read alone.
TEST(Zarray, CapsChunksBehindACompressorOnly) {
  const std::string huge = with("chunks", "[1048576,4194304]");
  EXPECT_EQ(reason(huge), "accepted");
  std::string compressed = huge;
  compressed.replace(huge.find("\"compressor\":null"), 17,
                     R"("compressor":{"id":"zstd","level":1})");
  EXPECT_EQ(reason(compressed), "zarr2/chunk-too-large");
}

TEST(Zarray, MessagesSayWhatWasFoundAndStayShort) {
  const auto bad = parse_metadata(with("order", "\"\\u00e9" + std::string(5000, 'x') + "\""));
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message(), HasSubstr(R"(order must be "C" or "F", but is "\u00e9xxx)"));
  EXPECT_LT(bad.error().message().size(), 120u);
  EXPECT_EQ(bad.error().code(), Code::kCorrupt);
  EXPECT_EQ(parse_metadata(with("filters", "[1]")).error().code(), Code::kUnimplemented);
}

TEST(Zarray, IsWrittenAsJaxWritesIt) {
  StoredArray array;
  array.dtype = DType::kBfloat16;
  array.shape = {8, 4};
  array.chunk_shape = {4, 4};
  array.codec = CodecSpec::zstd(1);
  const auto text = dump_metadata(array);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text,
            R"({"chunks":[4,4],"compressor":{"id":"zstd","level":1},"dimension_separator":".",)"
            R"("dtype":"bfloat16","fill_value":null,"filters":null,"order":"C","shape":[8,4],)"
            R"("zarr_format":2})");
}

TEST(Zarray, RefusesToWriteWhatZarrV2CannotSay) {
  const auto refusal = [](auto change) {
    StoredArray array;
    change(array);
    const auto text = dump_metadata(array);
    return text ? *text : std::string(text.error().reason());
  };
  using Stored = StoredArray;
  EXPECT_EQ(refusal([](Stored& a) { a.dtype = DType::kUint4; }), "zarr2/dtype-unsupported");
  EXPECT_EQ(refusal([](Stored& a) { a.dtype = DType::kFloat8E4m3; }), "zarr2/dtype-unsupported");
  EXPECT_EQ(refusal([](Stored& a) { a.packed = true; }), "zarr2/not-representable");
  EXPECT_EQ(refusal([](Stored& a) { a.one_object = true; }), "zarr2/not-representable");
  EXPECT_EQ(refusal([](Stored& a) { a.fill = "abc"; }), "zarr2/not-representable");
  EXPECT_EQ(refusal([](Stored& a) {
              a.dtype = DType::kBfloat16;
              a.big_endian = true;
            }),
            "zarr2/not-representable");
}

TEST(Zarray, NamesEveryTypeAsTensorStoreDoes) {
  struct Name {
    DType dtype;
    const char* text;
  };
  constexpr Name kNames[] = {
      {DType::kBool, "|b1"},          {DType::kInt8, "|i1"},
      {DType::kUint16, "<u2"},        {DType::kFloat64, "<f8"},
      {DType::kComplex128, "<c16"},   {DType::kInt4, "int4"},
      {DType::kBfloat16, "bfloat16"}, {DType::kFloat8E8m0fnu, "float8_e8m0fnu"},
  };
  for (const Name& name : kNames) EXPECT_EQ(*dtype_string(name.dtype), name.text);
  std::size_t known = 0;
  for (const DType dtype : all_dtypes()) {
    const auto text = dtype_string(dtype);
    if (!text) continue;
    ++known;
    const auto type = parse_stored_type(*text);
    ASSERT_TRUE(type) << *text;
    EXPECT_EQ(type->dtype, dtype) << *text;
    EXPECT_FALSE(type->big_endian);
  }
  EXPECT_EQ(known, 25u);
}

class RandomArray {
 public:
  explicit RandomArray(std::mt19937& random) : random_(random) {}

  StoredArray make() {
    StoredArray array;
    array.dtype = all_dtypes()[below(all_dtypes().size())];
    array.big_endian = below(2) == 1;
    array.fortran_order = below(2) == 1;
    array.separator = below(2) == 1 ? '/' : '.';
    if (below(2) == 1) array.codec = CodecSpec::zstd(static_cast<int>(below(5)));
    for (std::size_t rank = below(5); rank > 0; --rank) {
      array.shape.push_back(static_cast<Index>(below(9)));
      array.chunk_shape.push_back(static_cast<Index>(1 + below(9)));
    }
    if (below(2) == 1) {
      for (std::size_t i = 0; i < item_size(array.dtype); ++i) {
        array.fill += static_cast<char>(below(256));
      }
    }
    return array;
  }

 private:
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  std::mt19937& random_;
};

TEST(Zarray, WhatCanBeWrittenReadsBackTheSame) {
  std::mt19937 random(20);
  int written = 0;
  for (int i = 0; i < 2000; ++i) {
    const StoredArray array = RandomArray(random).make();
    const auto text = dump_metadata(array);
    if (!text) continue;
    ++written;
    const auto again = parse_metadata(*text);
    ASSERT_TRUE(again) << *text << " " << again.error().to_string();
    EXPECT_EQ(again->dtype, array.dtype) << *text;
    EXPECT_EQ(again->big_endian, array.big_endian && item_size(array.dtype) > 1) << *text;
    EXPECT_EQ(again->fortran_order, array.fortran_order) << *text;
    EXPECT_EQ(again->separator, array.separator) << *text;
    EXPECT_EQ(again->codec, array.codec) << *text;
    EXPECT_EQ(again->shape, array.shape) << *text;
    EXPECT_EQ(again->chunk_shape, array.chunk_shape) << *text;
    EXPECT_EQ(again->fill, array.fill) << *text;
  }
  EXPECT_GT(written, 800);
}

}  // namespace
}  // namespace cairn::format::zarr2
