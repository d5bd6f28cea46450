// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/writer.h"

#include <algorithm>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "cairn/format/safetensors/header_parser.h"
#include "cairn/format/safetensors/reader.h"
#include "cairn/storage/forwarding_store.h"
#include "cairn/storage/memory/memory_store.h"

namespace cairn::format::safetensors {
namespace {

// What safetensors 0.8.0 makes of the tensors below, without its padding.
constexpr std::string_view kLibraryHeader =
    R"({"__metadata__":{"format":"pt"},)"
    R"("t13":{"dtype":"U64","shape":[2,3],"data_offsets":[0,48]},)"
    R"("t06":{"dtype":"I64","shape":[],"data_offsets":[48,56]},)"
    R"("t19":{"dtype":"F64","shape":[3],"data_offsets":[56,80]},)"
    R"("t12":{"dtype":"C64","shape":[2,3],"data_offsets":[80,128]},)"
    R"("":{"dtype":"F32","shape":[0],"data_offsets":[128,128]},)"
    R"("/s":{"dtype":"F32","shape":[0],"data_offsets":[128,128]},)"
    R"("B":{"dtype":"F32","shape":[0],"data_offsets":[128,128]},)"
    R"("a.b":{"dtype":"F32","shape":[0],"data_offsets":[128,128]},)"
    R"("b":{"dtype":"F32","shape":[0],"data_offsets":[128,128]},)"
    "\"t\\tn\\nr\\rb\\bf\\f\\u0001\x7f\":{\"dtype\":\"F32\",\"shape\":[0],"
    "\"data_offsets\":[128,128]},"
    R"("t05":{"dtype":"F32","shape":[],"data_offsets":[128,132]},)"
    R"("z\"q\\":{"dtype":"F32","shape":[0],"data_offsets":[132,132]},)"
    "\"\xC3\xA9\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[132,132]},"
    "\"\xE2\x80\xA8\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[132,132]},"
    "\"\xF0\x9F\x98\x80\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[132,132]},"
    R"("t18":{"dtype":"U32","shape":[3],"data_offsets":[132,144]},)"
    R"("t11":{"dtype":"I32","shape":[2,3],"data_offsets":[144,168]},)"
    R"("t04":{"dtype":"BF16","shape":[],"data_offsets":[168,170]},)"
    R"("t17":{"dtype":"F16","shape":[3],"data_offsets":[170,176]},)"
    R"("t10":{"dtype":"U16","shape":[2,3],"data_offsets":[176,188]},)"
    R"("t03":{"dtype":"I16","shape":[],"data_offsets":[188,190]},)"
    R"("t16":{"dtype":"F8_E5M2FNUZ","shape":[3],"data_offsets":[190,193]},)"
    R"("t09":{"dtype":"F8_E4M3FNUZ","shape":[2,3],"data_offsets":[193,199]},)"
    R"("t02":{"dtype":"F8_E8M0","shape":[],"data_offsets":[199,200]},)"
    R"("t15":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[200,203]},)"
    R"("t08":{"dtype":"F8_E5M2","shape":[2,3],"data_offsets":[203,209]},)"
    R"("t01":{"dtype":"I8","shape":[],"data_offsets":[209,210]},)"
    R"("t14":{"dtype":"U8","shape":[3],"data_offsets":[210,213]},)"
    R"("t07":{"dtype":"F4","shape":[2,6],"data_offsets":[213,219]},)"
    R"("t00":{"dtype":"BOOL","shape":[],"data_offsets":[219,220]}})";

std::vector<Tensor> library_tensors() {
  return {{"t00", DType::kBool, {}},
          {"t07", DType::kFloat4E2m1fn, {2, 6}},
          {"t14", DType::kUint8, {3}},
          {"t01", DType::kInt8, {}},
          {"t08", DType::kFloat8E5m2, {2, 3}},
          {"t15", DType::kFloat8E4m3fn, {3}},
          {"t02", DType::kFloat8E8m0fnu, {}},
          {"t09", DType::kFloat8E4m3fnuz, {2, 3}},
          {"t16", DType::kFloat8E5m2fnuz, {3}},
          {"t03", DType::kInt16, {}},
          {"t10", DType::kUint16, {2, 3}},
          {"t17", DType::kFloat16, {3}},
          {"t04", DType::kBfloat16, {}},
          {"t11", DType::kInt32, {2, 3}},
          {"t18", DType::kUint32, {3}},
          {"t05", DType::kFloat32, {}},
          {"t12", DType::kComplex64, {2, 3}},
          {"t19", DType::kFloat64, {3}},
          {"t06", DType::kInt64, {}},
          {"t13", DType::kUint64, {2, 3}},
          {"b", DType::kFloat32, {0}},
          {"a.b", DType::kFloat32, {0}},
          {"\xC3\xA9", DType::kFloat32, {0}},
          {"z\"q\\", DType::kFloat32, {0}},
          {"t\tn\nr\rb\bf\f\x01\x7f", DType::kFloat32, {0}},
          {"/s", DType::kFloat32, {0}},
          {"\xE2\x80\xA8", DType::kFloat32, {0}},
          {"\xF0\x9F\x98\x80", DType::kFloat32, {0}},
          {"B", DType::kFloat32, {0}},
          {"", DType::kFloat32, {0}}};
}

// The JSON of a header, without its padding, which is checked.
std::string strip(const std::string& text) {
  EXPECT_EQ(text.size() % kDataAlignment, 0u);
  const auto length = parse_header_length(as_bytes(text), text.size());
  EXPECT_TRUE(length && *length == text.size() - kLengthBytes);
  const std::size_t last = text.find_last_not_of(' ');
  EXPECT_LT(text.size() - last - 1, kDataAlignment);
  return text.substr(kLengthBytes, last + 1 - kLengthBytes);
}

TEST(SafetensorsMakeHeader, WritesTheTextOfTheLibraryAndPadsItToABlock) {
  std::vector<Tensor> tensors = library_tensors();
  const auto text = make_header(tensors, {{"format", "pt"}});
  ASSERT_TRUE(text) << text.error().to_string();
  EXPECT_EQ(strip(*text), kLibraryHeader);
}

TEST(SafetensorsMakeHeader, WritesAnEmptySet) {
  std::vector<Tensor> none;
  EXPECT_EQ(strip(*make_header(none, {})), "{}");
  EXPECT_EQ(strip(*make_header(none, {{"a", "b"}})), R"({"__metadata__":{"a":"b"}})");
}

TEST(SafetensorsMakeHeader, KeepsTheOrderOfTheMetadata) {
  std::vector<Tensor> none;
  EXPECT_EQ(strip(*make_header(none, {{"z", "1"}, {"a", "\"\n"}})),
            R"({"__metadata__":{"z":"1","a":"\"\n"}})");
}

TEST(SafetensorsMakeHeader, PadsOnlyAsFarAsTheNextBoundary) {
  constexpr std::pair<std::size_t, std::size_t> kCases[] = {
      {4087, 4096}, {4088, 4096}, {4089, 8192}, {8184, 8192}};
  for (const auto& [json_size, file_size] : kCases) {
    std::vector<Tensor> none;
    const std::size_t frame = strip(*make_header(none, {{"k", ""}})).size();
    const auto text = make_header(none, {{"k", std::string(json_size - frame, 'x')}});
    ASSERT_TRUE(text);
    EXPECT_EQ(strip(*text).size(), json_size);
    EXPECT_EQ(text->size(), file_size);
  }
}

TEST(SafetensorsMakeHeader, RefusesWhatCannotBeRead) {
  struct Case {
    std::vector<Tensor> tensors;
    Metadata metadata;
    std::string_view reason;
  };
  const Shape huge = {Shape::value_type{1} << 58};
  const Case cases[] = {
      {{{"a", DType::kInt4, {2}}}, {}, "safetensors/dtype-unsupported"},
      {{{"a", DType::kComplex128, {2}}}, {}, "safetensors/dtype-unsupported"},
      {{{"a", DType::kFloat4E2m1fn, {3}}}, {}, "safetensors/misaligned"},
      {{{"a", DType::kInt8, {-1}}}, {}, "shape/negative"},
      {{{"a", DType::kInt8, {1}}, {"a", DType::kInt16, {1}}}, {}, "safetensors/duplicate-name"},
      {{{"__metadata__", DType::kInt8, {1}}}, {}, "safetensors/reserved-name"},
      {{{"a\xFF", DType::kInt8, {1}}}, {}, "safetensors/name-utf8"},
      {{}, {{"a\xFF", ""}}, "safetensors/name-utf8"},
      {{}, {{"a", "\xFF"}}, "safetensors/name-utf8"},
      {{}, {{"a", "1"}, {"a", "1"}}, "safetensors/duplicate-metadata-key"},
      {{}, {{"a", std::string(kMaxHeaderBytes, 'x')}}, "safetensors/header-too-large"},
      {{{"a", DType::kInt64, huge}}, {}, "safetensors/shape-overflow"},
      {{{"a", DType::kInt8, {Shape::value_type{1} << 60}},
        {"b", DType::kInt8, {Shape::value_type{1} << 60}},
        {"c", DType::kInt8, {Shape::value_type{1} << 60}},
        {"d", DType::kInt8, {Shape::value_type{1} << 60}}},
       {},
       "safetensors/data-too-large"},
  };
  for (const Case& c : cases) {
    std::vector<Tensor> tensors = c.tensors;
    const auto text = make_header(tensors, c.metadata);
    ASSERT_FALSE(text) << c.reason;
    EXPECT_EQ(text.error().reason(), c.reason);
    EXPECT_EQ(text.error().code(), Code::kInvalidArgument);
  }
}

TEST(SafetensorsMakeHeader, RefusesMoreValuesThanAParserTakes) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i <= kMaxHeaderValues / (10 + kMaxRank); ++i) {
    tensors.push_back({std::to_string(i), DType::kInt8, Shape(kMaxRank, 1), 0, 0});
  }
  const auto refused = make_header(tensors, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "safetensors/header-too-large");
}

// Tensors of any type and small shape, empty ones included, under names of any characters.
std::vector<Tensor> random_tensors(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return random() % n; };
  const std::string_view pieces[] = {"a", ".", "layers", "0", "\"", "\\", "\n", "\xC3\xA9", "/"};
  std::vector<Tensor> tensors(below(20));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor& tensor = tensors[i];
    for (std::size_t n = below(6); n > 0; --n) tensor.name += pieces[below(std::size(pieces))];
    tensor.name += std::to_string(i);
    do {
      tensor.dtype = all_dtypes()[below(all_dtypes().size())];
    } while (dtype_place(tensor.dtype) < 0);
    for (std::size_t n = below(4); n > 0; --n) {
      tensor.shape.push_back(static_cast<Shape::value_type>(below(5)));
    }
    if (is_packed(tensor.dtype)) tensor.shape.push_back(4);
  }
  return tensors;
}

TEST(SafetensorsMakeHeader, GivesBackWhatWasWritten) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Tensor> tensors = random_tensors(random);
    const Metadata metadata = {{"format", "pt"}, {"round", std::to_string(round)}};
    const auto text = make_header(tensors, metadata);
    ASSERT_TRUE(text) << text.error().to_string();
    const std::uint64_t data = tensors.empty() ? 0 : tensors.back().end;
    const auto header = parse_header(text->substr(kLengthBytes), text->size() + data);
    ASSERT_TRUE(header) << header.error().to_string() << *text;
    EXPECT_EQ(header->metadata, metadata);
    EXPECT_EQ(header->data_start % kDataAlignment, 0u);
    EXPECT_TRUE(std::ranges::is_permutation(header->tensors, tensors));
    const auto backwards = [](const Tensor& a, const Tensor& b) {
      return dtype_place(a.dtype) < dtype_place(b.dtype) ||
             (a.dtype == b.dtype && b.name <= a.name);
    };
    EXPECT_EQ(std::ranges::adjacent_find(tensors, backwards), tensors.end());
  }
}

// A store that takes bytes in order only, as stores of whole objects do.
class InOrderStore final : public storage::ForwardingStore {
 public:
  InOrderStore() : ForwardingStore(storage::make_memory_store()) {}

  storage::Capabilities capabilities() const override { return {}; }
  Result<std::unique_ptr<storage::ObjectWriter>> create(std::string_view key,
                                                        std::uint64_t size) override {
    CAIRN_TRY_ASSIGN(auto out, behind_->create(key, size));
    return std::make_unique<InOrderWriter>(std::move(out));
  }

 private:
  class InOrderWriter final : public storage::ObjectWriter {
   public:
    explicit InOrderWriter(std::unique_ptr<storage::ObjectWriter> out) : out_(std::move(out)) {}
    Result<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
      EXPECT_EQ(offset, next_);
      next_ += bytes.size();
      return out_->write_at(offset, bytes);
    }
    Result<void> finish() override { return out_->finish(); }

   private:
    std::unique_ptr<storage::ObjectWriter> out_;
    std::uint64_t next_ = 0;
  };
};

std::string random_bytes(std::size_t size, std::mt19937& random) {
  std::string bytes(size, '\0');
  std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
  return bytes;
}

TEST(SafetensorsWriter, TakesPiecesInAnyOrderFromManyThreads) {
  std::mt19937 random(11);
  const auto store = storage::make_memory_store();
  auto writer = Writer::create(*store, "m/model.safetensors",
                               {{"a", DType::kFloat32, {100}},
                                {"b", DType::kInt8, {0}},
                                {"c", DType::kBfloat16, {33, 3}},
                                {"d", DType::kFloat4E2m1fn, {6}}},
                               {{"format", "pt"}});
  ASSERT_TRUE(writer) << writer.error().to_string();
  const std::string data = random_bytes(writer->header().data_bytes, random);

  struct Piece {
    const Tensor* tensor;
    std::uint64_t offset;
    std::uint64_t size;
  };
  std::vector<Piece> pieces;
  for (const Tensor& tensor : writer->tensors()) {
    const std::uint64_t size = tensor.end - tensor.begin;
    for (std::uint64_t at = 0; at < size; at += 17) {
      pieces.push_back({&tensor, at, std::min<std::uint64_t>(17, size - at)});
    }
  }
  std::ranges::shuffle(pieces, random);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < pieces.size(); i += 3) {
        const auto& [tensor, offset, size] = pieces[i];
        const auto bytes = as_bytes(data).subspan(tensor->begin + offset, size);
        EXPECT_TRUE(writer->write(*tensor, offset, bytes));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(store->stat("m/model.safetensors"));
  ASSERT_TRUE(writer->finish());

  const auto file = storage::read_all(*store, "m/model.safetensors", kMiB);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), writer->data_start() + data.size());
  EXPECT_EQ(as_text(file->bytes()).substr(writer->data_start()), data);
  const auto header = read_header(*store, "m/model.safetensors");
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_TRUE(std::ranges::is_permutation(header->tensors, writer->tensors()));
}

TEST(SafetensorsWriter, RefusesBytesOutsideATensor) {
  const auto store = storage::make_memory_store();
  auto writer = Writer::create(*store, "k", {{"a", DType::kInt8, {4}}}, {});
  ASSERT_TRUE(writer);
  const Tensor& tensor = writer->tensors().front();
  const auto reason = [&](const Tensor& which, std::uint64_t offset, std::string_view bytes) {
    const auto written = writer->write(which, offset, as_bytes(bytes));
    return written ? "accepted" : std::string(written.error().reason());
  };
  EXPECT_EQ(reason(tensor, 0, "12345"), "safetensors/out-of-range");
  EXPECT_EQ(reason(tensor, 3, "12"), "safetensors/out-of-range");
  EXPECT_EQ(reason(tensor, 5, ""), "safetensors/out-of-range");
  EXPECT_EQ(reason(tensor, ~std::uint64_t{0}, "12"), "safetensors/out-of-range");
  EXPECT_EQ(reason({"x", DType::kInt8, {4}, 4, 8}, 0, "1"), "safetensors/out-of-range");
  EXPECT_EQ(reason({"x", DType::kInt8, {4}, 4, 2}, 0, "1"), "safetensors/out-of-range");
  EXPECT_EQ(reason(tensor, 4, ""), "accepted");
}

TEST(SafetensorsWriter, DoesNotFinishAFileWithHoles) {
  const auto store = storage::make_memory_store();
  auto writer = Writer::create(*store, "k", {{"a", DType::kInt8, {4}}}, {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write(writer->tensors().front(), 0, as_bytes("123")));
  const auto finished = writer->finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().reason(), "storage/incomplete");
  EXPECT_FALSE(store->stat("k"));
}

TEST(SafetensorsWriter, TakesMetadataOfTheSameLengthUntilTheEnd) {
  const auto store = storage::make_memory_store();
  auto writer = Writer::create(*store, "k", {{"a", DType::kInt8, {2}}}, {{"sum", "00"}});
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write(writer->tensors().front(), 0, as_bytes("ab")));
  const auto longer = writer->set_metadata({{"sum", std::string(kDataAlignment, 'x')}});
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().reason(), "safetensors/metadata-length");
  ASSERT_TRUE(writer->set_metadata({{"sum", "7f"}}));
  ASSERT_TRUE(writer->finish());
  const auto header = read_header(*store, "k");
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_EQ(header->metadata, (Metadata{{"sum", "7f"}}));
  const auto file = storage::read_all(*store, "k", kMiB);
  ASSERT_TRUE(file);
  EXPECT_EQ(as_text(file->bytes()).substr(0, writer->data_start()), writer->header_text());
}

TEST(SafetensorsWriter, WritesInOrderWhereTheStoreNeedsIt) {
  InOrderStore store;
  auto writer = Writer::create(
      store, "k", {{"a", DType::kInt8, {2}}, {"b", DType::kInt8, {0}}, {"c", DType::kInt8, {1}}},
      {{"sum", "00"}});
  ASSERT_TRUE(writer);
  for (const Tensor& tensor : writer->tensors()) {
    const std::string_view bytes = std::string_view("xyz").substr(tensor.begin, tensor.end);
    ASSERT_TRUE(writer->write(tensor, 0, as_bytes(bytes.substr(0, tensor.end - tensor.begin))));
  }
  const auto changed = writer->set_metadata({{"sum", "7f"}});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().reason(), "safetensors/header-written");
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(read_header(store, "k"));
}

}  // namespace
}  // namespace cairn::format::safetensors
