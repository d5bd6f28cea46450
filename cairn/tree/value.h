// SPDX-License-Identifier: Apache-2.0
// Leaves that are not arrays: None, bool, integers of any size, floats, complex, text, bytes.
// docs/format/structure.md has their JSON.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "cairn/base/json.h"

namespace cairn {

/// Largest value that is stored, in bytes of its JSON.
constexpr std::size_t kMaxValueBytes = std::size_t{1} << 20;

/// An integer of any size, as canonical decimal digits ("-12", never "+1" or "007").
class Integer {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Integer(T value) : digits_(std::to_string(value)) {}  // NOLINT(google-explicit-constructor)
  /// `invalid_argument` (value/bad-integer). At most kMaxValueBytes of digits.
  static Result<Integer> parse(std::string_view digits);
  const std::string& digits() const { return digits_; }
  /// nullopt if it does not fit.
  std::optional<std::int64_t> to_int64() const;
  std::optional<std::uint64_t> to_uint64() const;
  bool operator==(const Integer&) const = default;

 private:
  Integer() = default;
  std::string digits_;
};

struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};

/// std::monostate is None. Text is UTF-8. Write an int as Value(Integer(1)), because complex
/// numbers accept ints as well.
using Value =
    std::variant<std::monostate, bool, Integer, double, std::complex<double>, std::string, Bytes>;

/// "none", "bool", "int", "float", "complex", "str", "bytes".
std::string_view type_name(const Value& value);
/// Typed JSON without any loss, even of NaN payloads: {"type": "int", "value": "12"}.
/// `invalid_argument`: value/not-utf8, value/too-large.
Result<Json> value_to_json(const Value& value);
/// `corrupt`: value/bad-json. Unknown members are ignored.
Result<Value> value_from_json(const Json& json);
/// For people: None, true, 12, 1.5, nan, (1+2j), "text", b"\x00". Control bytes are escaped.
std::string value_to_text(const Value& value);
/// Bitwise for floats: NaN equals itself, 0.0 and -0.0 differ.
bool same_value(const Value& a, const Value& b);

}  // namespace cairn
