// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/header.h"

#include <array>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cairn/base/json.h"
#include "cairn/format/safetensors/header_parser.h"

namespace cairn::format::safetensors {
namespace {

std::string repeat(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// An entry for "a", four bytes of U8, with `more` members.
std::string entry(std::string_view more = "") {
  return fmt::format(R"({{"dtype":"U8","shape":[4],"data_offsets":[0,4]{}}})", more);
}

std::string tensor(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

Result<Header> parse(std::string_view json, std::uint64_t data_bytes) {
  return parse_header(json, kLengthBytes + json.size() + data_bytes);
}

std::string reason_of(const Result<Header>& header) {
  return header ? "accepted" : std::string(header.error().reason());
}

struct Case {
  std::string json;
  std::uint64_t data_bytes;
  std::string_view reason;
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const auto header = parse(c.json, c.data_bytes);
    EXPECT_EQ(reason_of(header), c.reason) << c.json.substr(0, 300);
    if (!header && c.reason != "safetensors/rank") {
      EXPECT_EQ(header.error().code(), Code::kCorrupt) << c.json.substr(0, 300);
    }
  }
}

TEST(SafetensorsHeader, ReadsTensorsByOffset) {
  const auto header = parse(
      R"( {"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("__metadata__":{"y":"2","x":"1"},"a":{"shape":[],"data_offsets":[0,4],"dtype":"F32"}} )",
      16);
  ASSERT_TRUE(header) << header.error().to_string();
  const std::vector<Tensor> expected = {{"a", DType::kFloat32, {}, 0, 4},
                                        {"b", DType::kBfloat16, {2, 3}, 4, 16}};
  EXPECT_EQ(header->tensors, expected);
  EXPECT_EQ(header->metadata, (Metadata{{"x", "1"}, {"y", "2"}}));
  EXPECT_EQ(header->data_bytes, 16u);
}

TEST(SafetensorsHeader, AcceptsEverySpellingThatTheLibraryAccepts) {
  const std::string deep =
      R"({"a":)" + entry(",\"x\":" + repeat("[", 125) + repeat("]", 125)) + "}";
  check({
      {"{}", 0, "accepted"},
      {"{}      ", 0, "accepted"},
      {"\t\r\n {\"a\":" + entry() + "}\n\t\r ", 4, "accepted"},
      {R"({"a":["U8",[4],[0,4]]})", 4, "accepted"},
      {R"({"a":[{"U8":null},[4],[0,4]]})", 4, "accepted"},
      {tensor(R"({"U8":null})", "[4]", "[0,4]"), 4, "accepted"},
      {"{\"a\":" + entry(",\"x\":1,\"x\":[{}],\"y\":1e-999") + "}", 4, "accepted"},
      {"{\"a\":" + entry() + ",\"a\":" + entry() + "}", 4, "accepted"},
      {R"({"__metadata__":null,"a":)" + entry() + "}", 4, "accepted"},
      {R"({"__metadata__":{}})", 0, "accepted"},
      {R"({"__metadata__":{"":"","k":"1","k":"2"}})", 0, "accepted"},
      {R"({"a\u0000\/\uffff":)" + entry() + "}", 4, "accepted"},
      {R"({"":)" + entry() + "}", 4, "accepted"},
      {tensor(R"("F4")", "[3,0]", "[0,0]"), 0, "accepted"},
      {tensor(R"("F4")", "[3,2]", "[0,3]"), 3, "accepted"},
      {tensor(R"("F6_E2M3")", "[4]", "[0,3]"), 3, "accepted"},
      {tensor(R"("U64")", "[0]", "[0,0]"), 0, "accepted"},
      {tensor(R"("U8")", "[1" + repeat(",1", 31) + "]", "[0,1]"), 1, "accepted"},
      {"{\"a\":" + entry() + R"(,"z":["U8",[0],[4,4]],"y":["U8",[0],[0,0]]})", 4, "accepted"},
      {deep, 4, "accepted"},
  });
}

TEST(SafetensorsHeader, KeepsTheLastOfARepeatedMetadataKey) {
  const auto header = parse(R"({"__metadata__":{"k":"1","j":"x","k":"2"}})", 0);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->metadata, (Metadata{{"j", "x"}, {"k", "2"}}));
}

TEST(SafetensorsHeader, CountsARepeatedEntryOnce) {
  const auto header = parse("{\"a\":" + entry() + ",\"a\":" + entry() + "}", 4);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->tensors.size(), 1u);
}

TEST(SafetensorsHeader, TakesTheMetadataNameHoweverItIsEscaped) {
  const auto header = parse(R"({"\u005f_metadata__":{"k":"v"}})", 0);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->metadata, (Metadata{{"k", "v"}}));
}

TEST(SafetensorsHeader, RefusesTextThatIsNotJson) {
  const std::string good = "{\"a\":" + entry() + "}";
  check({
      {"", 0, "safetensors/json"},
      {"        ", 0, "safetensors/json"},
      {"\xEF\xBB\xBF" + good, 4, "safetensors/json"},
      {good + std::string(8, '\0'), 4, "safetensors/json"},
      {good + std::string(1, '\0') + " ", 4, "safetensors/json"},
      {"\f" + good, 4, "safetensors/json"},
      {good + good, 4, "safetensors/json"},
      {good.substr(0, good.size() - 1), 4, "safetensors/json"},
      {"{\"a\":" + entry() + ",}", 4, "safetensors/json"},
      {"{'a':1}", 0, "safetensors/json"},
      {"{\"a\n\":" + entry() + "}", 4, "safetensors/json"},
      {R"({"\ud800":)" + entry() + "}", 4, "safetensors/json"},
      {"{\"a\":" + entry(",\"x\":NaN") + "}", 4, "safetensors/json"},
      {"{\"a\":" + entry(",\"x\":1e999") + "}", 4, "safetensors/json"},
      {"{\"a\":" + entry(",\"x\":" + repeat("9", 400)) + "}", 4, "safetensors/json"},
      {tensor("\"U8\"", "[04]", "[0,4]"), 4, "safetensors/json"},
      {"{\"\xFF\":" + entry() + "}", 4, "safetensors/utf8"},
      {"{\"\xC0\xAF\":" + entry() + "}", 4, "safetensors/utf8"},
      {"{\"\xED\xA0\x80\":" + entry() + "}", 4, "safetensors/utf8"},
      {"{\"a\":" + entry(",\"x\":" + repeat("[", 126) + repeat("]", 126)) + "}", 4,
       "safetensors/too-deep"},
      {repeat("[", 100'000), 0, "safetensors/too-deep"},
      {"[]", 0, "safetensors/header-type"},
      {"null", 0, "safetensors/header-type"},
      {"1", 0, "safetensors/header-type"},
  });
}

TEST(SafetensorsHeader, RefusesEntriesOfTheWrongForm) {
  check({
      {R"({"a":null})", 0, "safetensors/entry-type"},
      {R"({"a":"U8"})", 0, "safetensors/entry-type"},
      {R"({"a":["U8",[4]]})", 4, "safetensors/entry-type"},
      {R"({"a":["U8",[4],[0,4],1]})", 4, "safetensors/entry-type"},
      {R"({"a":5,"a":)" + entry() + "}", 4, "safetensors/entry-type"},
      {R"({"a":{"shape":[4],"data_offsets":[0,4]}})", 4, "safetensors/missing-dtype"},
      {R"({"a":{"dtype":"U8","data_offsets":[0,4]}})", 4, "safetensors/missing-shape"},
      {R"({"a":{"dtype":"U8","shape":[4]}})", 4, "safetensors/missing-offsets"},
      {"{\"a\":" + entry(",\"dtype\":\"U8\"") + "}", 4, "safetensors/duplicate-field"},
      {"{\"a\":" + entry(",\"shape\":null") + "}", 4, "safetensors/duplicate-field"},
      {"{\"a\":" + entry(",\"data_offsets\":[0,4]") + "}", 4, "safetensors/duplicate-field"},
      {tensor("5", "[4]", "[0,4]"), 4, "safetensors/dtype-type"},
      {tensor("null", "[4]", "[0,4]"), 4, "safetensors/dtype-type"},
      {tensor(R"({"U8":[]})", "[4]", "[0,4]"), 4, "safetensors/dtype-type"},
      {tensor(R"({"U8":null,"U8":null})", "[4]", "[0,4]"), 4, "safetensors/dtype-type"},
      {tensor(R"("u8")", "[4]", "[0,4]"), 4, "safetensors/dtype-unknown"},
      {tensor(R"("I4")", "[4]", "[0,2]"), 2, "safetensors/dtype-unknown"},
      {tensor(R"("")", "[4]", "[0,4]"), 4, "safetensors/dtype-unknown"},
      {tensor("\"U8\"", "4", "[0,4]"), 4, "safetensors/shape-type"},
      {tensor("\"U8\"", "null", "[0,4]"), 4, "safetensors/shape-type"},
      {tensor("\"U8\"", "[[4]]", "[0,4]"), 4, "safetensors/shape-type"},
      {tensor("\"U8\"", "[4.0]", "[0,4]"), 4, "safetensors/shape-type"},
      {tensor("\"U8\"", "[4e0]", "[0,4]"), 4, "safetensors/shape-type"},
      {tensor("\"U8\"", "[-2,-2]", "[0,4]"), 4, "safetensors/shape-type"},
      {tensor("\"U8\"", "[-0]", "[0,0]"), 0, "safetensors/shape-type"},
      {tensor("\"U8\"", "[18446744073709551616,0]", "[0,0]"), 0, "safetensors/shape-type"},
      {tensor("\"U8\"", "[1" + repeat(",1", 32) + "]", "[0,1]"), 1, "safetensors/rank"},
      {tensor("\"U8\"", "[4]", "4"), 4, "safetensors/offset-type"},
      {tensor("\"U8\"", "[4]", "[4]"), 4, "safetensors/offset-type"},
      {tensor("\"U8\"", "[4]", "[0,4,4]"), 4, "safetensors/offset-type"},
      {tensor("\"U8\"", "[4]", "[0,4.0]"), 4, "safetensors/offset-type"},
      {tensor("\"U8\"", "[4]", "[-0,4]"), 4, "safetensors/offset-type"},
      {tensor("\"U8\"", "[4]", "[\"0\",4]"), 4, "safetensors/offset-type"},
      {tensor("\"U8\"", "[4]", "[0,18446744073709551616]"), 4, "safetensors/offset-type"},
      {tensor("\"U8\"", "[4]", "{\"0\":0,\"1\":4}"), 4, "safetensors/offset-type"},
      {R"({"__metadata__":[]})", 0, "safetensors/metadata-type"},
      {R"({"__metadata__":"x"})", 0, "safetensors/metadata-type"},
      {R"({"__metadata__":{"k":1}})", 0, "safetensors/metadata-type"},
      {R"({"__metadata__":{"k":null,"k":"v"}})", 0, "safetensors/metadata-type"},
      {R"({"__metadata__":null,"__metadata__":{}})", 0, "safetensors/duplicate-metadata"},
  });
}

TEST(SafetensorsHeader, RefusesSizesAndRangesThatDoNotFit) {
  const std::string other = R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":)";
  const std::string pair = "{\"a\":" + entry() + other;
  check({
      {tensor("\"U8\"", "[3]", "[0,4]"), 4, "safetensors/size-mismatch"},
      {tensor("\"U16\"", "[4]", "[0,4]"), 4, "safetensors/size-mismatch"},
      {tensor("\"U8\"", "[4]", "[0,18446744073709551615]"), 4, "safetensors/size-mismatch"},
      {tensor("\"F4\"", "[3]", "[0,2]"), 2, "safetensors/misaligned"},
      {tensor("\"F4\"", "[]", "[0,1]"), 1, "safetensors/misaligned"},
      {tensor("\"F6_E3M2\"", "[2]", "[0,2]"), 2, "safetensors/misaligned"},
      {tensor("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0, "safetensors/shape-overflow"},
      {tensor("\"U8\"", "[4294967296,4294967296,0]", "[0,0]"), 0, "safetensors/shape-overflow"},
      {tensor("\"U8\"", "[0,4294967296,4294967296]", "[0,0]"), 0, "safetensors/shape-overflow"},
      {tensor("\"F64\"", "[288230376151711744]", "[0,0]"), 0, "safetensors/shape-overflow"},
      {tensor("\"U8\"", "[0,9223372036854775808]", "[0,0]"), 0, "safetensors/shape-overflow"},
      {tensor("\"F64\"", "[0,2305843009213693952]", "[0,0]"), 0, "safetensors/shape-overflow"},
      {tensor("\"U8\"", "[4]", "[4,0]"), 4, "safetensors/offset-reversed"},
      {tensor("\"U8\"", "[4]", "[1,5]"), 5, "safetensors/offset-gap"},
      {pair + "[5,9]}}", 9, "safetensors/offset-gap"},
      {pair + "[2,6]}}", 6, "safetensors/offset-overlap"},
      {pair + "[0,4]}}", 4, "safetensors/offset-overlap"},
      {R"({"z":["U8",[0],[2,2]],"a":)" + entry() + "}", 4, "safetensors/offset-overlap"},
      {R"({"z":["U8",[0],[5,5]],"a":)" + entry() + "}", 4, "safetensors/offset-gap"},
      {"{\"a\":" + entry() + R"(,"a":["U8",[4],[4,8]]})", 8, "safetensors/duplicate-tensor"},
      {"{\"a\":" + entry() + R"(,"a":["I8",[4],[0,4]]})", 4, "safetensors/duplicate-tensor"},
      {"{\"a\":" + entry() + "}", 3, "safetensors/truncated"},
      {"{\"a\":" + entry() + "}", 0, "safetensors/truncated"},
      {"{\"a\":" + entry() + "}", 5, "safetensors/trailing-bytes"},
      {"{}", 1, "safetensors/trailing-bytes"},
  });
}

TEST(SafetensorsHeader, NamesTheTensorInItsErrorsAndCutsLongNames) {
  const std::string name = "layers\x1b[2J." + repeat("x", 100'000);
  const auto header = parse(fmt::format(R"({{{}:["U8",[5],[0,4]]}})", dump_json(Json(name))), 4);
  ASSERT_FALSE(header);
  const std::string text = header.error().to_string();
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find(R"("layers\u001b[2J.xxx)"), std::string::npos) << text.substr(0, 400);
  EXPECT_LT(text.size(), 500u);
}

TEST(SafetensorsHeader, RefusesAHeaderThatIsLongerThanItsFile) {
  EXPECT_EQ(reason_of(parse_header("{}", 9)), "safetensors/header-length");
  EXPECT_EQ(reason_of(parse_header("{}", 3)), "safetensors/header-length");
}

TEST(SafetensorsHeader, ChecksTheLengthFieldBeforeAnythingIsRead) {
  struct LengthCase {
    std::uint64_t length;
    std::uint64_t file_size;
    std::string_view reason;
  };
  const LengthCase cases[] = {
      {0, 8, "accepted"},
      {2, 10, "accepted"},
      {3, 10, "safetensors/header-length"},
      {1, 8, "safetensors/header-length"},
      {100'000'000, 100'000'008, "accepted"},
      {100'000'000, 100'000'007, "safetensors/header-length"},
      {100'000'001, 1'000'000'000, "safetensors/header-too-large"},
      {std::uint64_t{1} << 63, 100, "safetensors/header-too-large"},
      {~std::uint64_t{0}, 7, "safetensors/header-too-small"},
      {~std::uint64_t{0}, ~std::uint64_t{0}, "safetensors/header-too-large"},
  };
  for (const auto& [length, file_size, reason] : cases) {
    std::array<std::byte, 8> field;
    for (unsigned i = 0; i < 8; ++i) field[i] = static_cast<std::byte>(length >> (8 * i));
    const auto parsed = parse_header_length(field, file_size);
    EXPECT_EQ(parsed ? "accepted" : parsed.error().reason(), reason) << length << " " << file_size;
    if (parsed) {
      EXPECT_EQ(*parsed, length);
    }
  }
  EXPECT_FALSE(parse_header_length({}, 100));
}

TEST(SafetensorsHeader, ReadsAHundredThousandTensors) {
  constexpr std::uint64_t kTensors = 100'000;
  std::string json = "{";
  for (std::uint64_t i = kTensors; i-- > 0;) {
    json +=
        fmt::format(R"("layers.{}.kernel":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})", i,
                    4 * i, 4 * i + 4);
    json += i == 0 ? '}' : ',';
  }
  const auto header = parse(json, 4 * kTensors);
  ASSERT_TRUE(header) << header.error().to_string();
  ASSERT_EQ(header->tensors.size(), kTensors);
  EXPECT_EQ(header->tensors[12345].name, "layers.12345.kernel");
}

TEST(SafetensorsHeader, MakesAViewOfATensorForReading) {
  const Header header{.tensors = {}, .metadata = {}, .data_start = 4096, .data_bytes = 100};
  const StoredArray plain =
      header.stored_array({"a", DType::kFloat32, {2, 3}, 8, 32}, "model.safetensors");
  EXPECT_EQ(plain.offset, 4104u);
  EXPECT_EQ(plain.chunk_bytes(), 24u);
  EXPECT_EQ(plain.chunk_count(), 1u);
  EXPECT_EQ(plain.chunk_key(0), "model.safetensors");
  EXPECT_TRUE(plain.plain());

  const StoredArray packed = header.stored_array({"a", DType::kFloat6E2m3fn, {8}, 0, 6}, "k");
  EXPECT_TRUE(packed.packed);
  EXPECT_EQ(packed.chunk_bytes(), 6u);
  EXPECT_EQ(packed.chunk_memory_bytes(), 8u);

  const StoredArray empty = header.stored_array({"a", DType::kInt8, {3, 0}, 0, 0}, "k");
  EXPECT_EQ(empty.chunk_shape, (Shape{3, 1}));
  EXPECT_EQ(empty.chunk_count(), 0u);
}

TEST(SafetensorsHeader, CountsTheBytesOfATensor) {
  EXPECT_EQ(*tensor_bytes(DType::kComplex64, {2, 3}), 48u);
  EXPECT_EQ(*tensor_bytes(DType::kFloat4E2m1fn, {2, 3}), 3u);
  EXPECT_EQ(*tensor_bytes(DType::kFloat6E3m2fn, {4}), 3u);
  EXPECT_EQ(*tensor_bytes(DType::kFloat4E2m1fn, {3, 0}), 0u);
  EXPECT_EQ(*tensor_bytes(DType::kBool, {}), 1u);
  EXPECT_EQ(tensor_bytes(DType::kInt4, {2}).error().reason(), "safetensors/dtype-unsupported");
  EXPECT_EQ(tensor_bytes(DType::kFloat4E2m1fn, {3}).error().reason(), "safetensors/misaligned");
  EXPECT_EQ(tensor_bytes(DType::kInt8, {-1}).error().reason(), "shape/negative");
}

TEST(SafetensorsDType, MapsEveryTypeBothWaysOrRefusesItWithAdvice) {
  int mapped = 0;
  for (const DType dtype : all_dtypes()) {
    const auto name = dtype_string(dtype);
    if (name) {
      ++mapped;
      EXPECT_EQ(parse_dtype_string(*name), dtype);
      EXPECT_GE(dtype_place(dtype), 0);
      continue;
    }
    EXPECT_EQ(name.error().reason(), "safetensors/dtype-unsupported");
    EXPECT_NE(name.error().message().find("cast it to"), std::string::npos);
    EXPECT_NE(name.error().message().find(dtype_name(dtype)), std::string::npos);
    EXPECT_EQ(dtype_place(dtype), -1);
  }
  EXPECT_EQ(mapped, 22);
}

TEST(SafetensorsHeader, RefusesMoreValuesThanTheLimit) {
  std::string text = R"({"a":[0)";
  for (std::size_t i = 0; i < kMaxHeaderValues; ++i) text += ",0";
  text += "]}";
  const auto header = parse_header(text, kLengthBytes + text.size());
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().reason(), "safetensors/header-too-large");
}

}  // namespace
}  // namespace cairn::format::safetensors
