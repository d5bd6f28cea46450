// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/dtype.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include <fmt/format.h>

namespace cairn::format::safetensors {
namespace {

struct Row {
  std::string_view name;
  DType dtype;
};

// In the order of the library's enum, which is the order of tensors in a file, backwards.
constexpr std::array kTypes = {
    Row{"BOOL", DType::kBool},
    Row{"F4", DType::kFloat4E2m1fn},
    Row{"F6_E2M3", DType::kFloat6E2m3fn},
    Row{"F6_E3M2", DType::kFloat6E3m2fn},
    Row{"U8", DType::kUint8},
    Row{"I8", DType::kInt8},
    Row{"F8_E5M2", DType::kFloat8E5m2},
    Row{"F8_E4M3", DType::kFloat8E4m3fn},
    Row{"F8_E8M0", DType::kFloat8E8m0fnu},
    Row{"F8_E4M3FNUZ", DType::kFloat8E4m3fnuz},
    Row{"F8_E5M2FNUZ", DType::kFloat8E5m2fnuz},
    Row{"I16", DType::kInt16},
    Row{"U16", DType::kUint16},
    Row{"F16", DType::kFloat16},
    Row{"BF16", DType::kBfloat16},
    Row{"I32", DType::kInt32},
    Row{"U32", DType::kUint32},
    Row{"F32", DType::kFloat32},
    Row{"C64", DType::kComplex64},
    Row{"F64", DType::kFloat64},
    Row{"I64", DType::kInt64},
    Row{"U64", DType::kUint64},
};

std::string_view advice(DType dtype) {
  switch (dtype) {
    case DType::kInt2:
    case DType::kInt4:
      return "cast it to int8, or save as zarr2";
    case DType::kUint2:
    case DType::kUint4:
      return "cast it to uint8";
    case DType::kComplex128:
      return "cast it to complex64, or save as zarr2";
    case DType::kFloat8E4m3:
      return "cast it to bfloat16";
    default:
      return "cast it to bfloat16, or save as zarr2";
  }
}

}  // namespace

Result<std::string_view> dtype_string(DType dtype) {
  const auto* row = std::ranges::find(kTypes, dtype, &Row::dtype);
  if (row != kTypes.end()) return row->name;
  return Error(Code::kInvalidArgument, "safetensors/dtype-unsupported",
               fmt::format("safetensors has no type for {}; {}", dtype_name(dtype), advice(dtype)));
}

std::optional<DType> parse_dtype_string(std::string_view text) {
  const auto* row = std::ranges::find(kTypes, text, &Row::name);
  if (row == kTypes.end()) return std::nullopt;
  return row->dtype;
}

int dtype_place(DType dtype) {
  const auto* row = std::ranges::find(kTypes, dtype, &Row::dtype);
  return row == kTypes.end() ? -1 : static_cast<int>(std::distance(kTypes.begin(), row));
}

}  // namespace cairn::format::safetensors
