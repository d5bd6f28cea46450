// SPDX-License-Identifier: Apache-2.0
// Files that safetensors and eformer wrote, byte for byte, and 101 that are damaged.
#include "cairn/testing/fixtures.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "cairn/base/base64.h"
#include "cairn/base/json.h"
#include "cairn/base/sha256.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/safetensors/reader.h"
#include "cairn/storage/local/local_store.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::format::safetensors {
namespace {

std::unique_ptr<storage::Store> open_folder(const std::string& folder) {
  auto store = storage::open_local_store(storage::posix_file_system(), folder);
  EXPECT_TRUE(store) << store.error().to_string();
  return store ? *std::move(store) : nullptr;
}

std::vector<std::string> files_of(storage::Store& store, std::string_view ending) {
  std::vector<std::string> keys;
  const auto entries = store.list("", true);
  EXPECT_TRUE(entries);
  for (const storage::ListEntry& entry : *entries) {
    if (entry.key.ends_with(ending)) keys.push_back(entry.key);
  }
  return keys;
}

Shape shape_of(const Json& sizes) {
  Shape shape;
  for (const Json& size : *sizes.array()) shape.push_back(*size.integer());
  return shape;
}

// The elements in memory are those that the bytes say: packed again, they are the same bytes.
void check_codec(const StoredArray& array, ByteSpan stored) {
  if (array.chunk_count() == 0) return;
  const auto codec = ChunkCodec::make(array);
  ASSERT_TRUE(codec);
  auto cells = Buffer::allocate(array.chunk_memory_bytes());
  ASSERT_TRUE(cells);
  ASSERT_TRUE(codec->decode(stored, cells->mutable_bytes()));
  const auto again = codec->encode(cells->bytes());
  ASSERT_TRUE(again);
  EXPECT_EQ(as_text(again->bytes()), as_text(stored));
}

void compare(storage::Store& store, const std::string& file, const Header& header,
             const Tensor& tensor, const Json& leaf) {
  SCOPED_TRACE(file + ": " + tensor.name);
  EXPECT_EQ(*dtype_string(tensor.dtype), *leaf.find("st_dtype")->text());
  if (const Json* dtype = leaf.find("dtype")) {
    EXPECT_EQ(dtype_name(tensor.dtype), *dtype->text());
  }
  EXPECT_EQ(tensor.shape, shape_of(*leaf.find("shape")));
  const StoredArray array = header.stored_array(tensor, file);
  auto bytes = Buffer::allocate(tensor.end - tensor.begin);
  ASSERT_TRUE(bytes);
  const auto reader = store.open(array.key);
  ASSERT_TRUE(reader);
  ASSERT_TRUE((*reader)->read_at(array.offset, bytes->mutable_bytes()));
  EXPECT_EQ(bytes->size(), *leaf.find("nbytes")->unsigned_integer());
  EXPECT_EQ(sha256_hex(bytes->bytes()), *leaf.find("sha256")->text());
  EXPECT_TRUE(encode_hex(bytes->bytes()).starts_with(*leaf.find("first")->text()));
  check_codec(array, bytes->bytes());
}

// File, then tensor, to what is expected.
std::map<std::string, std::map<std::string, const Json*>> expected_tensors(const Json& document) {
  std::map<std::string, std::map<std::string, const Json*>> files;
  for (const Json& leaf : *document.find("leaves")->array()) {
    files[*leaf.find("file")->text()][*leaf.find("key")->text()] = &leaf;
  }
  return files;
}

class SafetensorsFixtures : public ::testing::TestWithParam<const char*> {};

TEST_P(SafetensorsFixtures, ReadToTheExpectedBytes) {
  CAIRN_FIXTURE_OR_SKIP(folder, GetParam());
  const auto document = parse_json(testing::read_file(folder + "/expected.json"));
  ASSERT_TRUE(document);
  const auto store = open_folder(folder + "/checkpoint");
  ASSERT_TRUE(store);
  auto expected = expected_tensors(*document);
  const auto files = files_of(*store, ".safetensors");
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) {
    const auto header = read_header(*store, file);
    ASSERT_TRUE(header) << header.error().to_string();
    for (const Tensor& tensor : header->tensors) {
      const Json* leaf = expected[file][tensor.name];
      ASSERT_NE(leaf, nullptr) << file << ": " << tensor.name;
      compare(*store, file, *header, tensor, *leaf);
    }
    EXPECT_EQ(header->tensors.size(), expected[file].size()) << file;
  }
  EXPECT_EQ(expected.size(), files.size());
}

TEST_P(SafetensorsFixtures, HavePartsThatHoldWhatTheirIndexSays) {
  CAIRN_FIXTURE_OR_SKIP(folder, GetParam());
  const auto store = open_folder(folder + "/checkpoint");
  ASSERT_TRUE(store);
  for (const std::string& key : files_of(*store, ".index.json")) {
    const auto index = read_index(*store, key);
    ASSERT_TRUE(index) << index.error().to_string();
    const auto parts = read_parts(*store, "", *index);
    ASSERT_TRUE(parts) << parts.error().to_string();
    std::size_t tensors = 0;
    for (const Part& part : *parts) tensors += part.header.tensors.size();
    EXPECT_EQ(tensors, index->weight_map.size());
    EXPECT_EQ(parts->size(), files_of(*store, ".safetensors").size());
  }
}

INSTANTIATE_TEST_SUITE_P(, SafetensorsFixtures,
                         ::testing::Values("safetensors_dtypes", "safetensors_headers",
                                           "safetensors_sharded", "eformer_safetensors",
                                           "eformer_safetensors_sharded"),
                         [](const auto& fixture) { return std::string(fixture.param); });

TEST(SafetensorsFixture, KeepsTheMetadata) {
  CAIRN_FIXTURE_OR_SKIP(folder, "safetensors_dtypes");
  const auto store = open_folder(folder + "/checkpoint");
  ASSERT_TRUE(store);
  const auto header = read_header(*store, "model.safetensors");
  ASSERT_TRUE(header);
  EXPECT_EQ(header->metadata,
            (Metadata{{"empty", ""}, {"format", "np"}, {"note", "\xC3\xA9 \"q\" \\ \n"}}));
}

TEST(SafetensorsFixture, WritesTheIndexOfHuggingFaceByteForByte) {
  CAIRN_FIXTURE_OR_SKIP(folder, "safetensors_sharded");
  const std::string text = testing::read_file(folder + "/checkpoint/model.safetensors.index.json");
  const auto document = parse_json(text);
  ASSERT_TRUE(document);
  Index index;
  for (const auto& [tensor, part] : *document->find("weight_map")->object()) {
    index.weight_map.emplace_back(tensor, *part.text());
  }
  EXPECT_EQ(dump_index(index, 828), text);
}

// Every damaged file and set, and the reason that refuses it; "" where it is accepted.
const std::map<std::string_view, std::string_view> kVerdicts = {
    {"beyond_end", "safetensors/truncated"},
    {"bom", "safetensors/json"},
    {"deep_100", ""},
    {"deep_header", "safetensors/too-deep"},
    {"deep_nesting", "safetensors/too-deep"},
    {"dtype_lower", "safetensors/dtype-unknown"},
    {"dtype_number", "safetensors/dtype-type"},
    {"dtype_u4", "safetensors/dtype-unknown"},
    {"dtype_unknown", "safetensors/dtype-unknown"},
    {"duplicate_field", "safetensors/duplicate-field"},
    {"duplicate_metadata", "safetensors/duplicate-metadata"},
    {"duplicate_metadata_key", ""},
    {"duplicate_name", "safetensors/duplicate-tensor"},
    {"duplicate_name_same", ""},
    {"empty_file", "safetensors/header-too-small"},
    {"entry_array", ""},
    {"entry_null", "safetensors/entry-type"},
    {"escape_lone_surrogate", "safetensors/json"},
    {"f4_odd", "safetensors/misaligned"},
    {"f6_not_bytes", "safetensors/misaligned"},
    {"gap", "safetensors/offset-gap"},
    {"gap_at_start", "safetensors/offset-gap"},
    {"header_array", "safetensors/header-type"},
    {"header_null", "safetensors/header-type"},
    {"header_number", "safetensors/header-type"},
    {"header_spaces", "safetensors/json"},
    {"index_absolute_path", "safetensors-index/part-path"},
    {"index_duplicate_tensor", "safetensors-index/duplicate-tensor"},
    {"index_empty_name", "safetensors-index/part-path"},
    {"index_is_directory", "safetensors-index/part-is-directory"},
    {"index_missing_part", "safetensors-index/missing-part"},
    {"index_no_weight_map", "safetensors-index/no-weight-map"},
    {"index_not_json", "safetensors-index/not-json"},
    {"index_nul_name", "safetensors-index/part-path"},
    {"index_parent_path", "safetensors-index/part-path"},
    {"index_subdir", ""},
    {"index_tensor_not_in_part", "safetensors-index/tensor-not-in-part"},
    {"index_value_not_text", "safetensors-index/part-type"},
    {"index_weight_map_array", "safetensors-index/weight-map-type"},
    {"json_comment", "safetensors/json"},
    {"json_control_char", "safetensors/json"},
    {"json_single_quotes", "safetensors/json"},
    {"json_trailing_comma", "safetensors/json"},
    {"json_trailing_garbage", "safetensors/json"},
    {"json_trailing_nul", "safetensors/json"},
    {"json_truncated", "safetensors/json"},
    {"json_two_objects", "safetensors/json"},
    {"length_100mb", "safetensors/header-length"},
    {"length_100mb_plus", "safetensors/header-too-large"},
    {"length_beyond_file", "safetensors/header-length"},
    {"length_big_endian", "safetensors/header-too-large"},
    {"length_max", "safetensors/header-too-large"},
    {"length_one_short", "safetensors/json"},
    {"length_signed", "safetensors/header-too-large"},
    {"length_zero", "safetensors/json"},
    {"metadata_array", "safetensors/metadata-type"},
    {"metadata_is_null", ""},
    {"metadata_is_tensor", "safetensors/metadata-type"},
    {"metadata_nested", "safetensors/metadata-type"},
    {"metadata_null", "safetensors/metadata-type"},
    {"metadata_number", "safetensors/metadata-type"},
    {"missing_dtype", "safetensors/missing-dtype"},
    {"missing_offsets", "safetensors/missing-offsets"},
    {"missing_shape", "safetensors/missing-shape"},
    {"not_json", "safetensors/json"},
    {"offset_above_u64", "safetensors/offset-type"},
    {"offset_exponent", "safetensors/offset-type"},
    {"offset_float", "safetensors/offset-type"},
    {"offset_max", "safetensors/size-mismatch"},
    {"offset_negative", "safetensors/offset-type"},
    {"offset_object", "safetensors/offset-type"},
    {"offset_one", "safetensors/offset-type"},
    {"offset_string", "safetensors/offset-type"},
    {"offset_three", "safetensors/offset-type"},
    {"only_length", "safetensors/header-length"},
    {"overlap", "safetensors/offset-overlap"},
    {"overlap_same", "safetensors/offset-overlap"},
    {"reversed", "safetensors/offset-reversed"},
    {"seven_bytes", "safetensors/header-too-small"},
    {"shape_bytes_overflow", "safetensors/shape-overflow"},
    {"shape_float", "safetensors/shape-type"},
    {"shape_leading_zero", "safetensors/json"},
    {"shape_minus_zero", "safetensors/shape-type"},
    {"shape_negative", "safetensors/shape-type"},
    {"shape_nested", "safetensors/shape-type"},
    {"shape_null", "safetensors/shape-type"},
    {"shape_overflow", "safetensors/shape-overflow"},
    {"shape_overflow_with_zero", "safetensors/shape-overflow"},
    {"shape_overflow_wraps", "safetensors/shape-overflow"},
    {"shape_string", "safetensors/shape-type"},
    {"size_too_large", "safetensors/size-mismatch"},
    {"size_too_small", "safetensors/size-mismatch"},
    {"trailing_bytes", "safetensors/trailing-bytes"},
    {"trailing_no_tensors", "safetensors/trailing-bytes"},
    {"truncated_all", "safetensors/truncated"},
    {"truncated_one", "safetensors/truncated"},
    {"utf8_invalid", "safetensors/utf8"},
    {"utf8_overlong", "safetensors/utf8"},
    {"utf8_surrogate", "safetensors/utf8"},
    {"wrong_magic_pickle", "safetensors/header-too-large"},
    {"wrong_magic_zip", "safetensors/header-length"},
};

// The reason why a file or a set is refused; "" if it is not.
std::string judge(storage::Store& store, const std::string& path) {
  if (path.ends_with(".safetensors")) {
    const auto header = read_header(store, path);
    return header ? "" : std::string(header.error().reason());
  }
  const auto index = read_index(store, path + "/model.safetensors.index.json");
  if (!index) return std::string(index.error().reason());
  const auto parts = read_parts(store, path, *index);
  return parts ? "" : std::string(parts.error().reason());
}

TEST(SafetensorsFixture, DamagedFilesAreRefusedEachForItsReason) {
  CAIRN_FIXTURE_OR_SKIP(folder, "safetensors_malformed");
  const auto store = open_folder(folder);
  const auto document = parse_json(testing::read_file(folder + "/malformed.json"));
  ASSERT_TRUE(store && document);
  std::set<std::string_view> seen;
  for (const Json& damaged : *document->find("cases")->array()) {
    const std::string& name = *damaged.find("name")->text();
    SCOPED_TRACE(name);
    const auto verdict = kVerdicts.find(name);
    ASSERT_NE(verdict, kVerdicts.end());
    seen.insert(verdict->first);
    const std::string reason = judge(*store, *damaged.find("file")->text());
    EXPECT_EQ(reason, verdict->second);
    // The library reads no index; of files it accepts the same ones.
    if (const Json* library = damaged.find("safetensors"); !library->is_null()) {
      EXPECT_EQ(reason.empty(), library->find("safe_open")->find("accepts")->boolean());
    }
  }
  EXPECT_EQ(seen.size(), kVerdicts.size());
}

}  // namespace
}  // namespace cairn::format::safetensors
