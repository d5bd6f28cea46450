// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/dtype.h"

#include <set>

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(DType, NamesAreDistinctAndParseBack) {
  std::set<std::string_view> names;
  for (const DType dtype : all_dtypes()) {
    EXPECT_TRUE(names.insert(dtype_name(dtype)).second) << dtype_name(dtype);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(names.size(), 30U);
}

TEST(DType, RefusesNamesItDoesNotKnow) {
  for (const char* name : {"", "float", "Float32", "float32 ", "int128", "<f4", "bf16"}) {
    EXPECT_EQ(parse_dtype(name), std::nullopt) << name;
  }
}

TEST(DType, KnowsKindsAndSizes) {
  struct Expected {
    const char* name;
    DTypeKind kind;
    std::size_t item_size;
    int bits;
  };
  const Expected table[] = {
      {"bool", DTypeKind::kBool, 1, 8},           {"int2", DTypeKind::kSigned, 1, 2},
      {"int64", DTypeKind::kSigned, 8, 64},       {"uint4", DTypeKind::kUnsigned, 1, 4},
      {"uint16", DTypeKind::kUnsigned, 2, 16},    {"float4_e2m1fn", DTypeKind::kFloat, 1, 4},
      {"float6_e3m2fn", DTypeKind::kFloat, 1, 6}, {"float8_e8m0fnu", DTypeKind::kFloat, 1, 8},
      {"bfloat16", DTypeKind::kFloat, 2, 16},     {"float64", DTypeKind::kFloat, 8, 64},
      {"complex64", DTypeKind::kComplex, 8, 64},  {"complex128", DTypeKind::kComplex, 16, 128},
  };
  for (const Expected& row : table) {
    const auto dtype = parse_dtype(row.name);
    ASSERT_TRUE(dtype) << row.name;
    EXPECT_EQ(dtype_kind(*dtype), row.kind) << row.name;
    EXPECT_EQ(item_size(*dtype), row.item_size) << row.name;
    EXPECT_EQ(bit_width(*dtype), row.bits) << row.name;
    EXPECT_EQ(is_float(*dtype), row.kind == DTypeKind::kFloat) << row.name;
  }
}

TEST(DType, ABitWidthFitsItsItem) {
  for (const DType dtype : all_dtypes()) {
    const int room = 8 * static_cast<int>(item_size(dtype));
    EXPECT_LE(bit_width(dtype), room) << dtype_name(dtype);
    if (item_size(dtype) > 1) {
      EXPECT_EQ(bit_width(dtype), room) << dtype_name(dtype);
    }
  }
}

}  // namespace
}  // namespace cairn
