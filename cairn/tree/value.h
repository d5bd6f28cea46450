// SPDX-License-Identifier: Apache-2.0
// Leaves that are not arrays: None, bool, integers of any size, floats, complex, text, bytes.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "cairn/base/json.h"

namespace cairn::inline tree {

/// An integer of any size, as canonical decimal digits ("-12", never "+1" or "007").
class Integer {
 public:
  Integer(std::int64_t value) : digits_(std::to_string(value)) {}  // NOLINT(google-explicit-constructor)
  /// `invalid_argument` (value/bad-integer). At most 1 MiB of digits.
  static Result<Integer> parse(std::string_view digits);
  const std::string& digits() const { return digits_; }
  std::optional<std::int64_t> to_int64() const;
  bool operator==(const Integer&) const = default;

 private:
  std::string digits_;
};

struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};

/// std::monostate is None. Text is UTF-8.
using Value = std::variant<std::monostate, bool, Integer, double, std::complex<double>, std::string, Bytes>;

/// Largest value that is stored, in bytes of its JSON.
constexpr std::size_t kMaxValueBytes = std::size_t{1} << 20;

/// "none", "bool", "int", "float", "complex", "str", "bytes".
std::string_view type_name(const Value& value);
/// Typed JSON that loses nothing, NaN payloads included: {"type": "int", "value": "12"}.
/// `invalid_argument`: value/not-utf8, value/too-large.
Result<Json> value_to_json(const Value& value);
/// `corrupt`: value/bad-json.
Result<Value> value_from_json(const Json& json);
/// For a person: 12, 1.5, "text", b"\x00".
std::string value_to_text(const Value& value);
/// Bitwise for floats: NaN equals itself, 0.0 and -0.0 differ.
bool same_value(const Value& a, const Value& b);

}  // namespace cairn::inline tree
