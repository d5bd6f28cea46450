// SPDX-License-Identifier: Apache-2.0
// Every pair of types is compared with ml_dtypes, bit for bit, in tests/oracle/test_cast.py; here
// are the rules in words, and what that comparison cannot reach.
#include "cairn/array/cast.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The code that a double becomes.
std::uint64_t code_of(DType to, double value) {
  std::uint64_t code = 0;
  cast_elements(DType::kFloat64, std::as_bytes(std::span(&value, 1)), to,
                std::as_writable_bytes(std::span(&code, 1)).first(item_size(to)));
  return code;
}

double value_of(DType from, std::uint64_t code) {
  return element_as_double(from, reinterpret_cast<const std::byte*>(&code));
}

TEST(Cast, IsBetweenFloatsOrBetweenComplexTypes) {
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      const bool complex = dtype_kind(from) == DTypeKind::kComplex;
      const bool both =
          is_float(from) ? is_float(to) : complex && dtype_kind(to) == DTypeKind::kComplex;
      EXPECT_EQ(can_cast(from, to), both) << dtype_name(from) << " " << dtype_name(to);
    }
  }
}

TEST(Cast, RoundsOnceToNearestEven) {
  struct Expected {
    DType to;
    double value;
    std::uint64_t code;
  };
  const Expected table[] = {
      {DType::kBfloat16, 1 + 0x1p-8, 0x3F80},
      {DType::kBfloat16, 1 + 3 * 0x1p-8, 0x3F82},
      {DType::kBfloat16, 1 + 0x1p-8 + 0x1p-40, 0x3F81},
      {DType::kBfloat16, 1 + 0x1p-8 - 0x1p-40, 0x3F80},
      {DType::kBfloat16, 0x1p-134, 0x0000},
      {DType::kBfloat16, 0x1.8p-134, 0x0001},
      {DType::kFloat16, 1 + 0x1p-11, 0x3C00},
      {DType::kFloat16, 1 + 0x1p-11 + 0x1p-50, 0x3C01},
      {DType::kFloat16, 0x1p-25, 0x0000},
      {DType::kFloat16, 0x1.0000000001p-25, 0x0001},
      {DType::kFloat16, 65520, 0x7C00},
      {DType::kFloat16, 65519.99, 0x7BFF},
      {DType::kFloat8E4m3fn, 464, 0x7E},
      {DType::kFloat8E4m3fn, 464.0000000001, 0x7F},
      {DType::kFloat4E2m1fn, -0.25, 0x8},
      {DType::kFloat4E2m1fn, -0.2500000000001, 0x9},
  };
  for (const Expected& row : table) {
    EXPECT_EQ(code_of(row.to, row.value), row.code) << dtype_name(row.to) << " " << row.value;
  }
}

TEST(Cast, TreatsSpecialValuesAsTheTargetCan) {
  struct Expected {
    DType to;
    std::uint64_t infinity, minus_infinity, nan, minus_nan, minus_zero;
  };
  const Expected table[] = {
      {DType::kFloat4E2m1fn, 0x7, 0xF, 0x8, 0x0, 0x8},
      {DType::kFloat6E2m3fn, 0x1F, 0x3F, 0x20, 0x0, 0x20},
      {DType::kFloat8E4m3, 0x78, 0xF8, 0x7C, 0xFC, 0x80},
      {DType::kFloat8E4m3fn, 0x7F, 0xFF, 0x7F, 0xFF, 0x80},
      {DType::kFloat8E4m3fnuz, 0x80, 0x80, 0x80, 0x80, 0x00},
      {DType::kFloat8E8m0fnu, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
      {DType::kFloat16, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x8000},
      {DType::kBfloat16, 0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x8000},
      {DType::kFloat32, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x80000000},
  };
  for (const Expected& row : table) {
    EXPECT_EQ(code_of(row.to, kInf), row.infinity) << dtype_name(row.to);
    EXPECT_EQ(code_of(row.to, -kInf), row.minus_infinity) << dtype_name(row.to);
    EXPECT_EQ(code_of(row.to, kNan), row.nan) << dtype_name(row.to);
    EXPECT_EQ(code_of(row.to, std::copysign(kNan, -1.0)), row.minus_nan) << dtype_name(row.to);
    EXPECT_EQ(code_of(row.to, -0.0), row.minus_zero) << dtype_name(row.to);
  }
}

TEST(Cast, TakesTheNearestPowerOfTwoUpwardOnTies) {
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 1.0), 127U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 1.49999999), 127U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 1.5), 128U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 3.0), 129U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 1e-300), 0U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 0x1.4p-127), 0U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 0x1.8p-127), 1U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 0x1.7ffffp127), 254U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 0x1.8p127), 255U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, 0.0), 255U);
  EXPECT_EQ(code_of(DType::kFloat8E8m0fnu, -1.0), 255U);
}

TEST(Cast, WidensEveryCodeThatNarrowsBackToItself) {
  for (const DType dtype : all_dtypes()) {
    if (!is_float(dtype) || bit_width(dtype) > 16) continue;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << bit_width(dtype); ++code) {
      const double value = value_of(dtype, code);
      if (std::isnan(value)) continue;
      EXPECT_EQ(code_of(dtype, value), code) << dtype_name(dtype) << " " << value;
    }
  }
}

TEST(Cast, DoesNotDependOnTheThreadsRoundingMode) {
  const double value = 1 + 0x1p-24 + 0x1p-40;
  ASSERT_EQ(std::fesetround(FE_TOWARDZERO), 0);
  const std::uint64_t single = code_of(DType::kFloat32, value);
  const std::uint64_t half = code_of(DType::kFloat16, 0x1.8p-25);
  EXPECT_EQ(std::fegetround(), FE_TOWARDZERO);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(single, 0x3F800001U);
  EXPECT_EQ(half, 0x0001U);
}

void expect_each_as_alone(DType from, DType to, std::size_t count) {
  std::mt19937 random(1);
  std::vector<std::byte> source(count * item_size(from) + 1);
  for (std::byte& byte : source) byte = static_cast<std::byte>(random());
  std::vector<std::byte> target(count * item_size(to) + 2, std::byte{0x55});
  cast_elements(from, ByteSpan(source).subspan(1), to,
                MutableByteSpan(target).subspan(1, target.size() - 2));
  EXPECT_EQ(target.front(), std::byte{0x55});
  EXPECT_EQ(target.back(), std::byte{0x55});
  for (std::size_t i = 0; i < count; ++i) {
    std::byte alone[8];
    cast_elements(from, ByteSpan(source).subspan(1 + i * item_size(from), item_size(from)), to,
                  MutableByteSpan(alone).first(item_size(to)));
    ASSERT_EQ(std::memcmp(alone, target.data() + 1 + i * item_size(to), item_size(to)), 0)
        << dtype_name(from) << " " << dtype_name(to) << ", element " << i << " of " << count;
  }
}

TEST(Cast, GivesOneAnswerWhateverTheLengthAndAlignment) {
  for (const std::size_t count : {0U, 1U, 7U, 31U, 1023U, 1024U, 1025U, 3000U}) {
    expect_each_as_alone(DType::kFloat32, DType::kBfloat16, count);
    expect_each_as_alone(DType::kFloat16, DType::kFloat32, count);
    expect_each_as_alone(DType::kFloat64, DType::kFloat8E5m2, count);
    expect_each_as_alone(DType::kBfloat16, DType::kFloat64, count);
  }
}

TEST(CastArray, MakesADenseArrayOfAnyView) {
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  const Buffer bytes = Buffer::lend(std::as_bytes(std::span(numbers)), nullptr);
  const Array turned = *Array::wrap_strided(DType::kFloat32, {3, 2}, {4, 12}, bytes);
  const Array cast = *cast_array(turned, DType::kFloat64);
  ASSERT_EQ(cast.shape(), (Shape{3, 2}));
  EXPECT_TRUE(cast.dense());
  double values[6];
  std::memcpy(values, cast.data(), sizeof(values));
  EXPECT_EQ(std::vector<double>(values, values + 6), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(CastArray, ReturnsTheSameMemoryForTheSameType) {
  const Array array = *Array::zeros(DType::kInt32, {4});
  EXPECT_EQ(cast_array(array, DType::kInt32)->data(), array.data());
}

TEST(CastArray, RefusesIntegers) {
  const Array array = *Array::zeros(DType::kInt32, {4});
  EXPECT_EQ(cast_array(array, DType::kFloat32).error().reason(), "cast/unsupported");
  const Array floats = *Array::zeros(DType::kFloat32, {4});
  EXPECT_EQ(cast_array(floats, DType::kComplex64).error().reason(), "cast/unsupported");
}

TEST(PutDtype, CastsOnlyTheUsualFloats) {
  const DType wanted = DType::kBfloat16;
  for (const DType dtype : all_dtypes()) {
    const Array array = *Array::zeros(dtype, {2});
    const bool usual = is_float(dtype) && item_size(dtype) > 1;
    EXPECT_EQ(put_dtype(array, wanted)->dtype(), usual ? wanted : dtype) << dtype_name(dtype);
    EXPECT_EQ(put_dtype(array, std::nullopt)->data(), array.data());
  }
  const Array floats = *Array::zeros(DType::kFloat32, {2});
  EXPECT_EQ(put_dtype(floats, DType::kInt8).error().reason(), "cast/unsupported");
}

TEST(Element, IsReadAsADouble) {
  EXPECT_EQ(value_of(DType::kBool, 2), 1);
  EXPECT_EQ(value_of(DType::kInt2, 0b10), -2);
  EXPECT_EQ(value_of(DType::kInt4, 0x0F), -1);
  EXPECT_EQ(value_of(DType::kUint4, 0x0F), 15);
  EXPECT_EQ(value_of(DType::kInt8, 0x80), -128);
  EXPECT_EQ(value_of(DType::kInt64, ~std::uint64_t{0}), -1);
  EXPECT_EQ(value_of(DType::kUint64, ~std::uint64_t{0}), 0x1p64);
  EXPECT_EQ(value_of(DType::kBfloat16, 0x3FC0), 1.5);
  EXPECT_EQ(value_of(DType::kComplex64, std::bit_cast<std::uint32_t>(2.5F)), 2.5);
}

std::string text_of(DType dtype, std::uint64_t code) {
  return element_as_text(dtype, reinterpret_cast<const std::byte*>(&code));
}

TEST(Element, IsWrittenAsShortAsItReadsBack) {
  struct Expected {
    DType dtype;
    std::uint64_t code;
    const char* text;
  };
  const Expected table[] = {
      {DType::kBool, 0, "false"},
      {DType::kBool, 1, "true"},
      {DType::kInt4, 0x8, "-8"},
      {DType::kInt64, std::uint64_t{1} << 63, "-9223372036854775808"},
      {DType::kUint64, ~std::uint64_t{0}, "18446744073709551615"},
      {DType::kFloat32, std::bit_cast<std::uint32_t>(0.1F), "0.1"},
      {DType::kFloat32, std::bit_cast<std::uint32_t>(16777216.0F), "16777216"},
      {DType::kFloat64, std::bit_cast<std::uint64_t>(0.1), "0.1"},
      {DType::kFloat64, std::bit_cast<std::uint64_t>(1.0 / 3), "0.3333333333333333"},
      {DType::kFloat64, std::bit_cast<std::uint64_t>(-0.0), "-0"},
      {DType::kFloat64, std::bit_cast<std::uint64_t>(-kInf), "-inf"},
      {DType::kFloat64, std::bit_cast<std::uint64_t>(std::copysign(kNan, -1.0)), "nan"},
      {DType::kBfloat16, 0x3DCD, "0.1"},
      {DType::kBfloat16, 0x3FC0, "1.5"},
      {DType::kBfloat16, 0x7F80, "inf"},
      {DType::kFloat16, 0x3555, "0.3333"},
      {DType::kFloat8E4m3fn, 0x7F, "nan"},
      {DType::kFloat8E4m3fn, 0x7E, "448"},
      {DType::kBfloat16, 0x7F7F, "3.39e+38"},
      {DType::kBfloat16, 0x4974, "999424"},
      {DType::kFloat16, 0x0001, "6e-08"},
      {DType::kFloat4E2m1fn, 0x7, "6"},
  };
  for (const Expected& row : table) {
    EXPECT_EQ(text_of(row.dtype, row.code), row.text) << dtype_name(row.dtype);
  }
}

TEST(Element, IsWrittenAsAPairWhenComplex) {
  const float single[] = {1, 2};
  const double wide[] = {-0.5, -2};
  EXPECT_EQ(element_as_text(DType::kComplex64, std::as_bytes(std::span(single)).data()), "(1+2j)");
  EXPECT_EQ(element_as_text(DType::kComplex128, std::as_bytes(std::span(wide)).data()),
            "(-0.5-2j)");
}

}  // namespace
}  // namespace cairn
