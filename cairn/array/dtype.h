// SPDX-License-Identifier: Apache-2.0
// Element types: every one that JAX, TensorStore, zarr v2 or safetensors knows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cairn {

/// In memory every element takes whole bytes (int4: one byte with the high bits zero, as in
/// ml_dtypes and zarr). Formats that pack elements do so when they read and write. Complex is
/// (real, imaginary). Little endian.
// clang-format off
enum class DType : std::uint8_t {
  kBool,
  kInt2, kInt4, kInt8, kInt16, kInt32, kInt64,
  kUint2, kUint4, kUint8, kUint16, kUint32, kUint64,
  kFloat4E2m1fn, kFloat6E2m3fn, kFloat6E3m2fn,
  kFloat8E3m4, kFloat8E4m3, kFloat8E4m3b11fnuz, kFloat8E4m3fn, kFloat8E4m3fnuz,
  kFloat8E5m2, kFloat8E5m2fnuz, kFloat8E8m0fnu,
  kFloat16, kBfloat16, kFloat32, kFloat64,
  kComplex64, kComplex128,
};
// clang-format on

enum class DTypeKind : std::uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex };

/// All of them, in the order of the enum.
std::span<const DType> all_dtypes();
/// JAX's name: "bfloat16", "float8_e4m3fn", "int4", ...
std::string_view dtype_name(DType dtype);
/// The inverse; nullopt for an unknown name.
std::optional<DType> parse_dtype(std::string_view name);
DTypeKind dtype_kind(DType dtype);
inline bool is_float(DType dtype) { return dtype_kind(dtype) == DTypeKind::kFloat; }
/// Bytes of one element in memory: 1 for all sub-byte types.
std::size_t item_size(DType dtype);
/// Bits that carry information: 4 for int4, 6 for float6, 8 * item_size for whole-byte types.
int bit_width(DType dtype);

}  // namespace cairn
