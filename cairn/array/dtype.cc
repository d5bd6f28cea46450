// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/dtype.h"

#include <array>

namespace cairn {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  DTypeKind kind;
  std::size_t item_size;
  int bits;
};

using enum DTypeKind;

// In the order of the enum, so that a dtype is its row's index.
constexpr std::array kRows = {
    Row{DType::kBool, "bool", kBool, 1, 8},
    Row{DType::kInt2, "int2", kSigned, 1, 2},
    Row{DType::kInt4, "int4", kSigned, 1, 4},
    Row{DType::kInt8, "int8", kSigned, 1, 8},
    Row{DType::kInt16, "int16", kSigned, 2, 16},
    Row{DType::kInt32, "int32", kSigned, 4, 32},
    Row{DType::kInt64, "int64", kSigned, 8, 64},
    Row{DType::kUint2, "uint2", kUnsigned, 1, 2},
    Row{DType::kUint4, "uint4", kUnsigned, 1, 4},
    Row{DType::kUint8, "uint8", kUnsigned, 1, 8},
    Row{DType::kUint16, "uint16", kUnsigned, 2, 16},
    Row{DType::kUint32, "uint32", kUnsigned, 4, 32},
    Row{DType::kUint64, "uint64", kUnsigned, 8, 64},
    Row{DType::kFloat4E2m1fn, "float4_e2m1fn", kFloat, 1, 4},
    Row{DType::kFloat6E2m3fn, "float6_e2m3fn", kFloat, 1, 6},
    Row{DType::kFloat6E3m2fn, "float6_e3m2fn", kFloat, 1, 6},
    Row{DType::kFloat8E3m4, "float8_e3m4", kFloat, 1, 8},
    Row{DType::kFloat8E4m3, "float8_e4m3", kFloat, 1, 8},
    Row{DType::kFloat8E4m3b11fnuz, "float8_e4m3b11fnuz", kFloat, 1, 8},
    Row{DType::kFloat8E4m3fn, "float8_e4m3fn", kFloat, 1, 8},
    Row{DType::kFloat8E4m3fnuz, "float8_e4m3fnuz", kFloat, 1, 8},
    Row{DType::kFloat8E5m2, "float8_e5m2", kFloat, 1, 8},
    Row{DType::kFloat8E5m2fnuz, "float8_e5m2fnuz", kFloat, 1, 8},
    Row{DType::kFloat8E8m0fnu, "float8_e8m0fnu", kFloat, 1, 8},
    Row{DType::kFloat16, "float16", kFloat, 2, 16},
    Row{DType::kBfloat16, "bfloat16", kFloat, 2, 16},
    Row{DType::kFloat32, "float32", kFloat, 4, 32},
    Row{DType::kFloat64, "float64", kFloat, 8, 64},
    Row{DType::kComplex64, "complex64", kComplex, 8, 64},
    Row{DType::kComplex128, "complex128", kComplex, 16, 128},
};

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

constexpr auto kAll = [] {
  std::array<DType, kRows.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kRows[i].dtype;
  return all;
}();

const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::span<const DType> all_dtypes() { return kAll; }

std::string_view dtype_name(DType dtype) { return row(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& candidate : kRows) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

DTypeKind dtype_kind(DType dtype) { return row(dtype).kind; }
std::size_t item_size(DType dtype) { return row(dtype).item_size; }
int bit_width(DType dtype) { return row(dtype).bits; }

}  // namespace cairn
