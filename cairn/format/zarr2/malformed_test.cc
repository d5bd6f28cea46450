// SPDX-License-Identifier: Apache-2.0
// Damaged arrays, each with the reason it is refused for, beside what TensorStore and zarr-python
// say.
#include <algorithm>

#include <gtest/gtest.h>

#include "cairn/base/json.h"
#include "cairn/base/sha256.h"
#include "cairn/format/open.h"
#include "cairn/format/read_array.h"
#include "cairn/storage/local/local_store.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/fixtures.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::format::zarr2 {
namespace {

constexpr std::string_view kUndamaged = "undamaged";    // read, and the data are right
constexpr std::string_view kAsPeer = "as tensorstore";  // read, as TensorStore reads it: other data
constexpr std::string_view kMasked = "masked";          // int4 with the unused bits cleared

struct Verdict {
  std::string_view name;
  std::string_view expected;  // one of the above, or the reason of the refusal
};
constexpr Verdict kVerdicts[] = {
    {"undamaged", kUndamaged},
    {"no_metadata", "format/no-array"},
    {"json_empty", "zarr2/empty"},
    {"json_cut", "zarr2/not-json"},
    {"json_array", "zarr2/not-an-object"},
    {"json_null", "zarr2/not-an-object"},
    {"json_garbage_after", "zarr2/not-json"},
    {"json_bom", kUndamaged},
    {"json_nul", kUndamaged},
    {"json_invalid_utf8", "zarr2/not-utf8"},
    {"json_duplicate", kAsPeer},
    {"json_comment", "zarr2/not-json"},
    {"json_nan", "zarr2/not-json"},
    {"missing_zarr_format", "zarr2/missing-zarr_format"},
    {"missing_shape", "zarr2/missing-shape"},
    {"missing_chunks", "zarr2/missing-chunks"},
    {"missing_dtype", "zarr2/missing-dtype"},
    {"missing_compressor", kUndamaged},
    {"missing_fill_value", "zarr2/missing-fill_value"},
    {"missing_order", "zarr2/missing-order"},
    {"missing_filters", kUndamaged},
    {"missing_dimension_separator", kUndamaged},
    {"format_1", "zarr2/format-version"},
    {"format_3", "zarr2/format-version"},
    {"format_text", "zarr2/format-version"},
    {"format_float", kUndamaged},
    {"shape_negative", "zarr2/shape-negative"},
    {"shape_float", kUndamaged},
    {"shape_half", "zarr2/shape-type"},
    {"shape_text", "zarr2/shape-type"},
    {"shape_number", "zarr2/shape-type"},
    {"shape_null", "zarr2/shape-type"},
    {"shape_huge", "zarr2/shape-overflow"},
    {"shape_max", "zarr2/shape-overflow"},
    {"chunks_zero", "zarr2/chunk-zero"},
    {"chunks_negative", "zarr2/chunk-negative"},
    {"chunks_rank", "zarr2/chunk-rank"},
    {"chunks_rank_low", "zarr2/chunk-rank"},
    {"chunks_true", "zarr2/chunk-type"},
    {"chunks_float", kUndamaged},
    {"chunks_overflow", "zarr2/chunk-overflow"},
    {"chunks_bytes_overflow", "zarr2/chunk-overflow"},
    {"huge_chunk", "chunk/size"},
    {"dtype_unknown", "zarr2/dtype-unknown"},
    {"dtype_no_order", "zarr2/dtype-byte-order"},
    {"dtype_bar_multi", "zarr2/dtype-byte-order"},
    {"dtype_wrong_size", "zarr2/dtype-size"},
    {"dtype_float16_size", "zarr2/dtype-size"},
    {"dtype_object", "zarr2/dtype-object"},
    {"dtype_unicode", "zarr2/dtype-unicode"},
    {"dtype_datetime", "zarr2/dtype-datetime"},
    {"dtype_empty", "zarr2/dtype-unknown"},
    {"dtype_number", "zarr2/dtype-type"},
    {"dtype_uint4", "zarr2/dtype-unsupported"},
    {"dtype_upper", "zarr2/dtype-unknown"},
    {"dtype_struct", "zarr2/dtype-structured"},
    {"dtype_void", "zarr2/dtype-void"},
    {"order_x", "zarr2/order"},
    {"order_lower", "zarr2/order"},
    {"order_null", "zarr2/order"},
    {"separator_bad", "zarr2/separator"},
    {"separator_null", "zarr2/separator"},
    {"separator_mismatch", kAsPeer},
    {"filters_delta", "zarr2/filters"},
    {"filters_text", "zarr2/filters-type"},
    {"codec_unknown", "zarr2/compressor-unknown"},
    {"codec_lz4", "zarr2/compressor-unknown"},
    {"codec_lzma", "zarr2/compressor-unknown"},
    {"codec_no_id", "zarr2/compressor-no-id"},
    {"codec_text", "zarr2/compressor-type"},
    {"codec_id_number", "zarr2/compressor-no-id"},
    {"fill_text", "zarr2/fill-type"},
    {"fill_float", "zarr2/fill-fraction"},
    {"fill_range", "zarr2/fill-range"},
    {"fill_bool", "zarr2/fill-type"},
    {"fill_list", "zarr2/fill-type"},
    {"extra_member", kUndamaged},
    {"codec_level_text", "zarr2/compressor-parameter"},
    {"codec_level_10", "zarr2/compressor-parameter"},
    {"codec_level_negative", "zarr2/compressor-parameter"},
    {"codec_extra", "zarr2/compressor-parameter"},
    {"codec_zstd_numcodecs", kUndamaged},
    {"codec_zstd_level_23", kUndamaged},
    {"chunk_truncated", "chunk/size"},
    {"chunk_extra", "chunk/size"},
    {"chunk_empty", "chunk/size"},
    {"chunk_missing", kAsPeer},
    {"chunk_key_leading_zero", kAsPeer},
    {"chunk_outside_grid", kUndamaged},
    {"zlib_control", kUndamaged},
    {"zlib_truncated", "zlib/truncated"},
    {"zlib_last_byte", "zlib/truncated"},
    {"zlib_trailing", "zlib/trailing-bytes"},
    {"zlib_twice", "zlib/trailing-bytes"},
    {"zlib_short", "zlib/too-short"},
    {"zlib_long", "zlib/too-long"},
    {"zlib_flipped", "zlib/checksum"},
    {"zlib_garbage", "zlib/invalid"},
    {"zlib_empty", "chunk/expansion"},
    {"zstd_control", kUndamaged},
    {"zstd_truncated", "zstd/truncated"},
    {"zstd_last_byte", "zstd/truncated"},
    {"zstd_trailing", "zstd/trailing-bytes"},
    {"zstd_twice", "zstd/trailing-bytes"},
    {"zstd_short", "zstd/too-short"},
    {"zstd_long", "zstd/too-long"},
    {"zstd_flipped", kAsPeer},
    {"zstd_garbage", "zstd/invalid"},
    {"zstd_empty", "chunk/expansion"},
    {"gzip_control", kUndamaged},
    {"gzip_truncated", "gzip/truncated"},
    {"gzip_last_byte", "gzip/truncated"},
    {"gzip_trailing", "gzip/trailing-bytes"},
    {"gzip_twice", "gzip/trailing-bytes"},
    {"gzip_short", "gzip/too-short"},
    {"gzip_long", "gzip/too-long"},
    {"gzip_flipped", "gzip/checksum"},
    {"gzip_garbage", "gzip/invalid"},
    {"gzip_empty", "chunk/expansion"},
    {"bz2_control", kUndamaged},
    {"bz2_truncated", "bz2/truncated"},
    {"bz2_last_byte", "bz2/truncated"},
    {"bz2_trailing", "bz2/trailing-bytes"},
    {"bz2_twice", "bz2/trailing-bytes"},
    {"bz2_short", "bz2/too-short"},
    {"bz2_long", "bz2/too-long"},
    {"bz2_flipped", "bz2/truncated"},
    {"bz2_garbage", "bz2/invalid"},
    {"bz2_empty", "chunk/expansion"},
    {"blosc_control", kUndamaged},
    {"blosc_truncated", "blosc/truncated"},
    {"blosc_last_byte", "blosc/truncated"},
    {"blosc_trailing", "blosc/trailing-bytes"},
    {"blosc_twice", "blosc/trailing-bytes"},
    {"blosc_short", "blosc/too-short"},
    {"blosc_long", "blosc/too-long"},
    {"blosc_flipped", kAsPeer},
    {"blosc_garbage", "blosc/invalid"},
    {"blosc_empty", "chunk/expansion"},
    {"zstd_bomb", "zstd/too-long"},
    {"zstd_skippable_first", "zstd/invalid"},
    {"zstd_wrong_content_size", "zstd/too-long"},
    {"bool_two", "chunk/bool"},
    {"int4_high_bits", kMasked},
};

bool is_refusal(std::string_view expected) { return expected.find('/') != std::string_view::npos; }

struct Outcome {
  std::string reason;  // empty: read
  std::string digest;
};

Outcome read_case(const std::string& path) {
  const auto store = storage::open_local_store(storage::posix_file_system(), path);
  EXPECT_TRUE(store) << store.error().to_string();
  const auto stored = open_array(**store, "");
  if (!stored) return {std::string(stored.error().reason()), ""};
  const auto array = read_array(**store, *stored);
  if (!array) return {std::string(array.error().reason()), ""};
  return {"", sha256_hex(array->bytes())};
}

class Malformed : public ::testing::Test {
 protected:
  void SetUp() override {
    CAIRN_FIXTURE_OR_SKIP(folder, "zarr2_malformed");
    folder_ = folder;
    const auto document = parse_json(testing::read_file(folder_ + "/malformed.json"));
    ASSERT_TRUE(document);
    document_ = *document;
  }
  const Json::Array& cases() const { return *document_.find("cases")->array(); }

  std::string digest_of(std::string_view expected, const Json& peer) const {
    if (expected == kAsPeer) return *peer.find("sha256")->text();
    if (expected == kMasked) {
      return "94421005f53bb8c3da5bc4038e556b1d29beb74e1f1339ee244f42282040ae15";
    }
    return *document_.find("undamaged_sha256")->text();
  }

  std::string folder_;
  Json document_;
};

TEST_F(Malformed, EachCaseHasItsOwnReasonOrTheRightData) {
  for (const Json& malformed : cases()) {
    const std::string& name = *malformed.find("name")->text();
    SCOPED_TRACE(name);
    const auto* verdict = std::ranges::find(kVerdicts, name, &Verdict::name);
    ASSERT_NE(verdict, std::end(kVerdicts)) << "a case without a row";
    const Outcome outcome = read_case(folder_ + "/" + *malformed.find("dir")->text());
    if (is_refusal(verdict->expected)) {
      EXPECT_EQ(outcome.reason, verdict->expected);
    } else {
      EXPECT_EQ(outcome.reason, "");
      EXPECT_EQ(outcome.digest, digest_of(verdict->expected, *malformed.find("tensorstore")));
    }
  }
  EXPECT_EQ(std::size(kVerdicts), cases().size());
}

bool accepts(const Json* library) {
  return library != nullptr && library->find("accepts")->boolean() == true;
}
bool accepts_rightly(const Json* library) {
  return accepts(library) && library->find("same_as_undamaged")->boolean() == true;
}

// The table above is not free: what no library reads is refused, what both read rightly is read.
TEST_F(Malformed, VerdictsKeepToThoseOfTheLibraries) {
  for (const Json& malformed : cases()) {
    const std::string& name = *malformed.find("name")->text();
    const auto* verdict = std::ranges::find(kVerdicts, name, &Verdict::name);
    ASSERT_NE(verdict, std::end(kVerdicts)) << name;
    const Json* tensorstore = malformed.find("tensorstore");
    const Json* zarr_python = malformed.find("zarr_python");
    if (!accepts(tensorstore) && !accepts(zarr_python)) {
      EXPECT_TRUE(is_refusal(verdict->expected)) << name;
    }
    if (accepts_rightly(tensorstore) && accepts_rightly(zarr_python)) {
      EXPECT_EQ(verdict->expected, kUndamaged) << name;
    }
  }
}

}  // namespace
}  // namespace cairn::format::zarr2
