// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/zarr2/fill_value.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "cairn/array/cast.h"
#include "cairn/base/base64.h"
#include "cairn/format/zarr2/shown.h"

namespace cairn::format::zarr2 {
namespace {

Error bad_fill(const char* reason, DType dtype, const Json& value, std::string_view problem) {
  return Error(Code::kCorrupt, reason,
               fmt::format("fill_value {} {} {}", shown(value), problem, dtype_name(dtype)));
}
Error wrong_type(DType dtype, const Json& value) {
  return bad_fill("zarr2/fill-type", dtype, value, "is not how zarr v2 writes a");
}
Error out_of_range(DType dtype, const Json& value) {
  return bad_fill("zarr2/fill-range", dtype, value, "is outside the range of");
}

// zarr-python reads texts as Python's int() and float() do: spaces around and a plus are harmless.
std::string_view number_text(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <typename T>
std::errc parse_whole(std::string_view text, T& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end != text.data() + text.size())
    return std::errc::invalid_argument;
  return problem;
}

// Sign and magnitude: covers int64 and uint64.
struct Integer {
  bool negative = false;
  std::uint64_t magnitude = 0;
};

Result<Integer> integer_from_text(DType dtype, const Json& value) {
  std::string_view text = number_text(*value.text());
  Integer integer{.negative = text.starts_with('-')};
  if (integer.negative) text.remove_prefix(1);
  const std::errc problem = parse_whole(text, integer.magnitude);
  if (problem == std::errc::result_out_of_range) return out_of_range(dtype, value);
  if (problem != std::errc()) return wrong_type(dtype, value);
  return integer;
}

Result<Integer> to_integer(DType dtype, const Json& value) {
  if (value.text() != nullptr) return integer_from_text(dtype, value);
  if (const auto number = value.unsigned_integer()) return Integer{.magnitude = *number};
  if (const auto number = value.integral()) {
    const auto bits = static_cast<std::uint64_t>(*number);
    return Integer{.negative = *number < 0, .magnitude = *number < 0 ? 0 - bits : bits};
  }
  const std::optional<double> number = value.number();
  if (!number) return wrong_type(dtype, value);
  if (std::trunc(*number) == *number) return out_of_range(dtype, value);
  return bad_fill("zarr2/fill-fraction", dtype, value, "is not a whole number, as is every");
}

Result<std::string> parse_integer(DType dtype, const Json& value) {
  CAIRN_TRY_ASSIGN(const Integer integer, to_integer(dtype, value));
  const int width = bit_width(dtype);
  const bool is_signed = dtype_kind(dtype) == DTypeKind::kSigned;
  std::uint64_t largest =
      std::numeric_limits<std::uint64_t>::max() >> (64 - width + (is_signed ? 1 : 0));
  if (integer.negative) largest = is_signed ? largest + 1 : 0;
  if (integer.magnitude > largest) return out_of_range(dtype, value);
  std::uint64_t bits = integer.negative ? 0 - integer.magnitude : integer.magnitude;
  if (width < 8) bits &= (std::uint64_t{1} << width) - 1;
  std::string element(item_size(dtype), '\0');
  for (char& byte : element) {
    byte = static_cast<char>(bits & 0xff);
    bits >>= 8;
  }
  return element;
}

Result<std::string> parse_bool(const Json& value) {
  std::optional<bool> truth = value.boolean();
  const std::optional<std::int64_t> number = value.integral();
  if (number == 0 || number == 1) truth = *number == 1;
  if (!truth) return wrong_type(DType::kBool, value);
  return std::string(1, *truth ? '\1' : '\0');
}

// NaN, Infinity and the rest as from_chars reads them, in any case; but no NaN with a sign or a
// payload, which could not be written back.
Result<double> float_from_text(DType dtype, const Json& value) {
  const std::string_view text = number_text(*value.text());
  double number = 0;
  const std::errc problem = parse_whole(text, number);
  if (problem == std::errc::result_out_of_range) return out_of_range(dtype, value);
  if (problem != std::errc() || (std::isnan(number) && text.size() != 3)) {
    return wrong_type(dtype, value);
  }
  return number;
}

std::string from_double(DType dtype, double number) {
  std::string element(item_size(dtype), '\0');
  cast_elements(DType::kFloat64, std::as_bytes(std::span(&number, 1)), dtype,
                std::as_writable_bytes(std::span(element)));
  return element;
}

double to_double(DType dtype, const std::string& element) {
  return element_as_double(dtype, as_bytes(element).data());
}

// TensorStore up to 0.1.86 at least reads and writes this type's numbers with a wrong exponent bias
// (its 1.0 is the byte of 2^-64), so a number does not say which element is meant.
Result<std::string> parse_e8m0(const Json& value, double number) {
  if (std::isnan(number)) return std::string("\xff");
  if (number == 0) return std::string(1, '\0');
  return Error(Code::kUnimplemented, "zarr2/fill-ambiguous",
               fmt::format("fill_value {} of float8_e8m0fnu means different elements to different "
                           "writers; only null, 0 and \"NaN\" are read",
                           shown(value)));
}

Result<std::string> parse_float(DType dtype, const Json& value) {
  std::optional<double> number = value.number();
  if (value.text() != nullptr) {
    CAIRN_TRY_ASSIGN(number, float_from_text(dtype, value));
  }
  if (!number) return wrong_type(dtype, value);
  if (dtype == DType::kFloat8E8m0fnu) return parse_e8m0(value, *number);
  std::string element = from_double(dtype, *number);
  if (std::isnan(to_double(dtype, element)) && !std::isnan(*number)) {
    return out_of_range(dtype, value);
  }
  return element;
}

Result<std::string> parse_complex(DType dtype, const Json& value) {
  const Json::Array* parts = value.array();
  if (parts == nullptr || parts->size() != 2) return wrong_type(dtype, value);
  const DType half = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  CAIRN_TRY_ASSIGN(std::string element, parse_float(half, (*parts)[0]));
  CAIRN_TRY_ASSIGN(const std::string imaginary, parse_float(half, (*parts)[1]));
  return element + imaginary;
}

// TensorStore writes this one type as base64 of the element, never as a number.
Result<std::string> parse_float4(const Json& value) {
  if (value.text() == nullptr) return wrong_type(DType::kFloat4E2m1fn, value);
  Result<std::string> element = decode_base64(*value.text());
  if (!element || element->size() != 1) {
    return bad_fill("zarr2/fill-base64", DType::kFloat4E2m1fn, value,
                    "is not the base64 of one element of");
  }
  element->front() = static_cast<char>(element->front() & 0x0f);
  return element;
}

Json dump_float(DType dtype, const std::string& element) {
  const double number = to_double(dtype, element);
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  if (dtype == DType::kFloat8E8m0fnu) return 0.0;
  return number;
}

Json dump_integer(DType dtype, const std::string& element) {
  std::uint64_t bits = 0;
  for (std::size_t i = element.size(); i-- > 0;) {
    bits = bits << 8 | static_cast<unsigned char>(element[i]);
  }
  if (dtype_kind(dtype) == DTypeKind::kUnsigned) return bits;
  const int unused = 64 - bit_width(dtype);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

Json dump_complex(DType dtype, const std::string& element) {
  const DType half = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  const std::size_t size = item_size(half);
  return Json::Array{dump_float(half, element.substr(0, size)),
                     dump_float(half, element.substr(size))};
}

Json dump_element(DType dtype, const std::string& element) {
  if (dtype == DType::kFloat4E2m1fn) return encode_base64(as_bytes(element));
  switch (dtype_kind(dtype)) {
    case DTypeKind::kBool:
      return element.front() != '\0';
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned:
      return dump_integer(dtype, element);
    case DTypeKind::kFloat:
      return dump_float(dtype, element);
    case DTypeKind::kComplex:
      return dump_complex(dtype, element);
  }
  return nullptr;
}

}  // namespace

Result<std::string> parse_fill_value(DType dtype, const Json& value) {
  if (dtype == DType::kFloat4E2m1fn) return parse_float4(value);
  switch (dtype_kind(dtype)) {
    case DTypeKind::kBool:
      return parse_bool(value);
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned:
      return parse_integer(dtype, value);
    case DTypeKind::kFloat:
      return parse_float(dtype, value);
    case DTypeKind::kComplex:
      return parse_complex(dtype, value);
  }
  return wrong_type(dtype, value);
}

Result<Json> dump_fill_value(DType dtype, const std::string& fill) {
  if (fill.size() == item_size(dtype)) {
    Json value = dump_element(dtype, fill);
    const Result<std::string> again = parse_fill_value(dtype, value);
    if (again && *again == fill) return value;
  }
  return Error(Code::kInvalidArgument, "zarr2/not-representable",
               fmt::format("zarr v2 cannot write a fill value of {} with the bytes {}",
                           dtype_name(dtype), encode_hex(as_bytes(fill))));
}

}  // namespace cairn::format::zarr2
