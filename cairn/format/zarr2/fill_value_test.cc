// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/zarr2/fill_value.h"

#include <gtest/gtest.h>

#include "cairn/array/cast.h"
#include "cairn/base/base64.h"

namespace cairn::format::zarr2 {
namespace {

Json json(std::string_view text) {
  const auto value = parse_json(text);
  EXPECT_TRUE(value) << text;
  return *value;
}

struct Row {
  DType dtype;
  const char* text;
  const char* expected;  // hex of the element, or a reason
};

std::string outcome(const Row& row) {
  const auto element = parse_fill_value(row.dtype, json(row.text));
  return element ? encode_hex(as_bytes(*element)) : std::string(element.error().reason());
}

void expect_rows(std::span<const Row> rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(outcome(row), row.expected) << dtype_name(row.dtype) << " " << row.text;
  }
}

// The bytes are those of TensorStore and zarr-python, where they read the spelling.
TEST(FillValue, ReadsEverySpellingThatTensorStoreOrZarrPythonWrites) {
  constexpr Row kRows[] = {
      {DType::kBool, "true", "01"},
      {DType::kBool, "false", "00"},
      {DType::kInt8, "-128", "80"},
      {DType::kUint8, "255", "ff"},
      {DType::kInt16, "-32640", "8080"},
      {DType::kInt32, "-7", "f9ffffff"},
      {DType::kInt64, "-9223372036854775808", "0000000000000080"},
      {DType::kInt64, "-9007199254740993", "ffffffffffffdfff"},
      {DType::kUint64, "18446744073709551615", "ffffffffffffffff"},
      {DType::kInt4, "-8", "08"},
      {DType::kInt4, "7", "07"},
      {DType::kInt2, "-1", "03"},
      {DType::kFloat16, "1.5", "003e"},
      {DType::kFloat16, "65520", "007c"},
      {DType::kFloat32, "-0.0", "00000080"},
      {DType::kFloat32, "0.10000000149011612", "cdcccc3d"},
      {DType::kFloat32, "1e39", "0000807f"},
      {DType::kFloat64, "1e300", "9c7500883ce4377e"},
      {DType::kBfloat16, "0.5", "003f"},
      {DType::kFloat8E4m3fn, "0.5", "30"},
      {DType::kFloat8E5m2, "1.52587890625e-05", "01"},
      {DType::kFloat8E4m3b11fnuz, "-30.0", "ff"},
      {DType::kFloat32, "\"NaN\"", "0000c07f"},
      {DType::kFloat64, "\"Infinity\"", "000000000000f07f"},
      {DType::kFloat16, "\"-Infinity\"", "00fc"},
      {DType::kBfloat16, "\"NaN\"", "c07f"},
      {DType::kFloat8E3m4, "\"NaN\"", "78"},
      {DType::kFloat8E4m3fn, "\"NaN\"", "7f"},
      {DType::kFloat8E4m3fnuz, "\"NaN\"", "80"},
      {DType::kFloat8E5m2, "\"NaN\"", "7e"},
      {DType::kFloat8E8m0fnu, "\"NaN\"", "ff"},
      {DType::kFloat8E8m0fnu, "0.0", "00"},
      {DType::kFloat4E2m1fn, "\"BA==\"", "04"},
      {DType::kFloat4E2m1fn, "\"/w==\"", "0f"},
      {DType::kComplex64, "[1.0,-2.0]", "0000803f000000c0"},
      {DType::kComplex64, "[\"NaN\",\"-Infinity\"]", "0000c07f000080ff"},
      {DType::kComplex128, "[0.0,-0.0]", "00000000000000000000000000000080"},
  };
  expect_rows(kRows);
}

TEST(FillValue, ReadsHarmlessSpellings) {
  constexpr Row kRows[] = {
      {DType::kBool, "1", "01"},
      {DType::kBool, "0.0", "00"},
      {DType::kInt32, "1.0", "01000000"},
      {DType::kInt32, "-0.0", "00000000"},
      {DType::kInt32, "-0", "00000000"},
      {DType::kInt32, "\"5\"", "05000000"},
      {DType::kInt32, "\" -5 \"", "fbffffff"},
      {DType::kUint64, "\"+18446744073709551615\"", "ffffffffffffffff"},
      {DType::kFloat32, "7", "0000e040"},
      {DType::kFloat32, "\"1.5\"", "0000c03f"},
      {DType::kFloat32, "\"1e3\"", "00007a44"},
      {DType::kFloat32, "\"nan\"", "0000c07f"},
      {DType::kFloat32, "\"inf\"", "0000807f"},
      {DType::kFloat32, "\"+INFINITY\"", "0000807f"},
      {DType::kComplex64, "[\"1.5\",2]", "0000c03f00000040"},
  };
  expect_rows(kRows);
}

TEST(FillValue, RefusesWhatIsNoValueOfTheType) {
  constexpr Row kRows[] = {
      {DType::kBool, "2", "zarr2/fill-type"},
      {DType::kBool, "\"true\"", "zarr2/fill-type"},
      {DType::kInt32, "true", "zarr2/fill-type"},
      {DType::kInt32, "\"abc\"", "zarr2/fill-type"},
      {DType::kInt32, "\"\"", "zarr2/fill-type"},
      {DType::kInt32, "\"1.0\"", "zarr2/fill-type"},
      {DType::kInt32, "\"--1\"", "zarr2/fill-type"},
      {DType::kInt32, "\"+-1\"", "zarr2/fill-type"},
      {DType::kInt32, "[0]", "zarr2/fill-type"},
      {DType::kInt32, "{}", "zarr2/fill-type"},
      {DType::kInt32, "1.5", "zarr2/fill-fraction"},
      {DType::kInt32, "2147483648", "zarr2/fill-range"},
      {DType::kInt32, "-2147483649", "zarr2/fill-range"},
      {DType::kUint8, "-1", "zarr2/fill-range"},
      {DType::kUint64, "18446744073709551616", "zarr2/fill-range"},
      {DType::kUint64, "\"18446744073709551616\"", "zarr2/fill-range"},
      {DType::kInt64, "9223372036854775808", "zarr2/fill-range"},
      {DType::kInt4, "8", "zarr2/fill-range"},
      {DType::kInt4, "-9", "zarr2/fill-range"},
      {DType::kInt2, "2", "zarr2/fill-range"},
      {DType::kFloat32, "true", "zarr2/fill-type"},
      {DType::kFloat32, "\"-NaN\"", "zarr2/fill-type"},
      {DType::kFloat32, "\"nan(1)\"", "zarr2/fill-type"},
      {DType::kFloat32, "\"0x10\"", "zarr2/fill-type"},
      {DType::kFloat32, "\"AACAPw==\"", "zarr2/fill-type"},
      {DType::kFloat32, "\"1 2\"", "zarr2/fill-type"},
      {DType::kFloat64, "\"1e999\"", "zarr2/fill-range"},
      {DType::kFloat8E4m3fn, "\"Infinity\"", "zarr2/fill-range"},
      {DType::kFloat8E4m3fnuz, "1e9", "zarr2/fill-range"},
      {DType::kFloat8E8m0fnu, "1.0", "zarr2/fill-ambiguous"},
      {DType::kFloat4E2m1fn, "1.0", "zarr2/fill-type"},
      {DType::kFloat4E2m1fn, "\"AAAA\"", "zarr2/fill-base64"},
      {DType::kFloat4E2m1fn, "\"?\"", "zarr2/fill-base64"},
      {DType::kComplex64, "0", "zarr2/fill-type"},
      {DType::kComplex64, "[1]", "zarr2/fill-type"},
      {DType::kComplex64, "[1,2,3]", "zarr2/fill-type"},
      {DType::kComplex64, "[1,null]", "zarr2/fill-type"},
  };
  expect_rows(kRows);
}

TEST(FillValue, WritesWhatTensorStoreWrites) {
  constexpr Row kRows[] = {
      {DType::kBool, "true", "01"},
      {DType::kInt2, "-1", "03"},
      {DType::kInt4, "-4", "0c"},
      {DType::kInt64, "-9223372036854775808", "0000000000000080"},
      {DType::kUint64, "18446744073709551615", "ffffffffffffffff"},
      {DType::kFloat16, "1.531839370727539e-05", "0101"},
      {DType::kBfloat16, "2.369355800876173e-38", "0101"},
      {DType::kFloat32, "-0.0", "00000080"},
      {DType::kFloat32, "\"NaN\"", "0000c07f"},
      {DType::kFloat64, "\"-Infinity\"", "000000000000f0ff"},
      {DType::kFloat8E5m2, "1.0", "3c"},
      {DType::kFloat8E8m0fnu, "\"NaN\"", "ff"},
      {DType::kFloat4E2m1fn, "\"AQ==\"", "01"},
      {DType::kComplex64, "[0.0,-0.0]", "0000000000000080"},
      {DType::kComplex64, "[\"NaN\",1.0]", "0000c07f0000803f"},
  };
  for (const Row& row : kRows) {
    const auto value = dump_fill_value(row.dtype, *decode_hex(row.expected));
    ASSERT_TRUE(value) << dtype_name(row.dtype) << " " << row.expected;
    EXPECT_EQ(dump_json(*value), row.text) << dtype_name(row.dtype);
  }
}

TEST(FillValue, RefusesToWriteWhatWouldReadBackDifferently) {
  constexpr Row kRows[] = {
      {DType::kFloat32, "a NaN with a payload", "0100c07f"},
      {DType::kFloat32, "a NaN with a sign", "0000c0ff"},
      {DType::kInt4, "high bits", "f8"},
      {DType::kBool, "neither 0 nor 1", "02"},
      {DType::kFloat4E2m1fn, "high bits", "10"},
      {DType::kFloat8E8m0fnu, "a number", "7f"},
      {DType::kFloat32, "too short", "0000"},
      {DType::kUint8, "too long", "0000"},
  };
  for (const Row& row : kRows) {
    const auto value = dump_fill_value(row.dtype, *decode_hex(row.expected));
    ASSERT_FALSE(value) << dtype_name(row.dtype) << " " << row.text;
    EXPECT_EQ(value.error().reason(), "zarr2/not-representable");
  }
}

// Every element of the small types: written and read back, unless it is a NaN in disguise, has bits
// that do not count, or is a scale factor.
TEST(FillValue, RoundTripsEveryElementOfOneByte) {
  for (const DType dtype : all_dtypes()) {
    if (item_size(dtype) != 1 || dtype == DType::kFloat8E8m0fnu) continue;
    for (int bits = 0; bits < 256; ++bits) {
      const std::string element(1, static_cast<char>(bits));
      const bool in_range = dtype == DType::kBool ? bits < 2 : bits < 1 << bit_width(dtype);
      const double number = element_as_double(dtype, as_bytes(element).data());
      const auto value = dump_fill_value(dtype, element);
      if (in_range && number == number) {
        EXPECT_TRUE(value) << dtype_name(dtype) << " " << bits;
      }
      if (!value) continue;
      const auto again = parse_fill_value(dtype, json(dump_json(*value)));
      ASSERT_TRUE(again) << dtype_name(dtype) << " " << bits;
      EXPECT_EQ(*again, element) << dtype_name(dtype) << " " << bits;
    }
  }
}

}  // namespace
}  // namespace cairn::format::zarr2
