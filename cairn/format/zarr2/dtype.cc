// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/zarr2/dtype.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cairn/format/zarr2/shown.h"

namespace cairn::format::zarr2 {
namespace {

struct NumpyType {
  DType dtype;
  std::string_view code;  // what follows the byte order in a NumPy type string
};
constexpr std::array kNumpyTypes{
    NumpyType{DType::kBool, "b1"},      NumpyType{DType::kInt8, "i1"},
    NumpyType{DType::kInt16, "i2"},     NumpyType{DType::kInt32, "i4"},
    NumpyType{DType::kInt64, "i8"},     NumpyType{DType::kUint8, "u1"},
    NumpyType{DType::kUint16, "u2"},    NumpyType{DType::kUint32, "u4"},
    NumpyType{DType::kUint64, "u8"},    NumpyType{DType::kFloat16, "f2"},
    NumpyType{DType::kFloat32, "f4"},   NumpyType{DType::kFloat64, "f8"},
    NumpyType{DType::kComplex64, "c8"}, NumpyType{DType::kComplex128, "c16"},
};

// TensorStore's extension: these stand in `.zarray` by their plain names.
constexpr std::array kNamedTypes{
    DType::kInt2,
    DType::kInt4,
    DType::kFloat4E2m1fn,
    DType::kFloat8E3m4,
    DType::kFloat8E4m3b11fnuz,
    DType::kFloat8E4m3fn,
    DType::kFloat8E4m3fnuz,
    DType::kFloat8E5m2,
    DType::kFloat8E5m2fnuz,
    DType::kFloat8E8m0fnu,
    DType::kBfloat16,
};

const NumpyType* find_numpy(DType dtype) {
  const auto* row = std::ranges::find(kNumpyTypes, dtype, &NumpyType::dtype);
  return row == kNumpyTypes.end() ? nullptr : row;
}

const NumpyType* find_numpy(std::string_view code) {
  const auto* row = std::ranges::find(kNumpyTypes, code, &NumpyType::code);
  return row == kNumpyTypes.end() ? nullptr : row;
}

bool is_named(DType dtype) { return std::ranges::find(kNamedTypes, dtype) != kNamedTypes.end(); }

Error unknown_type(const Json& value) {
  return Error(
      Code::kCorrupt, "zarr2/dtype-unknown",
      fmt::format("dtype {} is not an element type of zarr v2; expected a NumPy type such as "
                  "\"<f4\", or a name such as \"bfloat16\"",
                  shown(value)));
}

struct RefusedKind {
  char letter;
  Code code;
  const char* reason;
  std::string_view what;
};
constexpr std::array kRefusedKinds{
    RefusedKind{'V', Code::kUnimplemented, "zarr2/dtype-void", "raw bytes without a meaning"},
    RefusedKind{'S', Code::kUnimplemented, "zarr2/dtype-bytes", "byte strings"},
    RefusedKind{'U', Code::kUnimplemented, "zarr2/dtype-unicode", "text"},
    RefusedKind{'M', Code::kUnimplemented, "zarr2/dtype-datetime", "dates"},
    RefusedKind{'m', Code::kUnimplemented, "zarr2/dtype-datetime", "time spans"},
    RefusedKind{'O', Code::kUnimplemented, "zarr2/dtype-object", "Python objects"},
};

// A type string with a byte order in front whose code is no row of kNumpyTypes.
Error refuse_numpy(const Json& value, std::string_view code) {
  const char letter = code.empty() ? '\0' : code.front();
  const auto* kind = std::ranges::find(kRefusedKinds, letter, &RefusedKind::letter);
  if (kind != kRefusedKinds.end()) {
    return Error(kind->code, kind->reason,
                 fmt::format("dtype {} means {}; Cairn reads arrays of numbers and bool",
                             shown(value), kind->what));
  }
  if (letter != '\0' && std::string_view("biufc").find(letter) != std::string_view::npos) {
    return Error(Code::kCorrupt, "zarr2/dtype-size",
                 fmt::format("dtype {} has an element size that no number type has", shown(value)));
  }
  return unknown_type(value);
}

Result<StoredType> parse_numpy(const Json& value, char order, std::string_view code) {
  const NumpyType* row = find_numpy(code);
  if (row == nullptr) return refuse_numpy(value, code);
  const bool one_byte = item_size(row->dtype) == 1;
  if (order == '|' && !one_byte) {
    return Error(Code::kCorrupt, "zarr2/dtype-byte-order",
                 fmt::format("dtype {} does not say its byte order; elements of more than one byte "
                             "begin with '<' or '>'",
                             shown(value)));
  }
  return StoredType{.dtype = row->dtype, .big_endian = order == '>' && !one_byte};
}

/// What to do with an array of a type that zarr v2 has not.
std::string_view way_out(DType dtype) {
  if (dtype == DType::kUint2 || dtype == DType::kUint4) return "cast it to uint8";
  if (dtype == DType::kFloat8E4m3) return "cast it to bfloat16";
  return "store it as safetensors, or cast it";
}

}  // namespace

Result<StoredType> parse_stored_type(const Json& value) {
  if (value.array() != nullptr) {
    return Error(Code::kUnimplemented, "zarr2/dtype-structured",
                 fmt::format("dtype {} is structured; Cairn reads arrays of one element type",
                             shown(value)));
  }
  const std::string* text = value.text();
  if (text == nullptr) {
    return Error(Code::kCorrupt, "zarr2/dtype-type",
                 fmt::format("dtype must be text, but is {}", shown(value)));
  }
  const std::string_view code = *text;
  if (!code.empty() && std::string_view("<>|").find(code.front()) != std::string_view::npos) {
    return parse_numpy(value, code.front(), code.substr(1));
  }
  if (find_numpy(code) != nullptr) return parse_numpy(value, '|', code);
  const std::optional<DType> dtype = parse_dtype(code);
  if (!dtype || find_numpy(*dtype) != nullptr) return unknown_type(value);
  if (is_named(*dtype)) return StoredType{.dtype = *dtype};
  return Error(Code::kUnimplemented, "zarr2/dtype-unsupported",
               fmt::format("dtype {} is not one that zarr v2 arrays can have", shown(value)));
}

Result<std::string> dump_stored_type(const StoredType& type) {
  const NumpyType* row = find_numpy(type.dtype);
  if (row != nullptr) {
    const char order = item_size(type.dtype) == 1 ? '|' : type.big_endian ? '>' : '<';
    return fmt::format("{}{}", order, row->code);
  }
  if (!is_named(type.dtype)) {
    return Error(Code::kInvalidArgument, "zarr2/dtype-unsupported",
                 fmt::format("zarr v2 has no element type {}; {}", dtype_name(type.dtype),
                             way_out(type.dtype)));
  }
  if (type.big_endian && item_size(type.dtype) > 1) {
    return Error(Code::kInvalidArgument, "zarr2/not-representable",
                 fmt::format("zarr v2 has no big endian {}", dtype_name(type.dtype)));
  }
  return std::string(dtype_name(type.dtype));
}

Result<std::string> dtype_string(DType dtype) { return dump_stored_type({.dtype = dtype}); }

}  // namespace cairn::format::zarr2
