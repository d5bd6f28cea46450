// SPDX-License-Identifier: Apache-2.0
// JSON as a value. The parser preserves what matters in foreign and hostile files: the order of
// members, repeated members, integers of any size with their sign, and -0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cairn/base/result.h"

namespace cairn {

/// One JSON value. Objects keep the order of their members. Threading: compatible.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  // NOLINTBEGIN(google-explicit-constructor): a value is written as what it is.
  Json() = default;  ///< null
  // Assign, do not copy-construct: when memory runs out in the copy of a variant, libstdc++
  // destroys what was never constructed.
  Json(const Json& other) : Json() { state_ = other.state_; }
  Json(Json&& other) noexcept = default;
  Json& operator=(const Json& other) = default;
  Json& operator=(Json&& other) noexcept = default;
  ~Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : state_(value) {}
  Json(int value) : Json(static_cast<std::int64_t>(value)) {}
  Json(std::int64_t value);
  Json(std::uint64_t value) : state_(value) {}
  Json(double value) : state_(value) {}
  Json(const char* text) : state_(std::string(text)) {}
  Json(std::string_view text) : state_(std::string(text)) {}
  Json(std::string text) : state_(std::move(text)) {}
  Json(Array items) : state_(std::move(items)) {}
  Json(Object members) : state_(std::move(members)) {}
  // NOLINTEND(google-explicit-constructor)
  /// An integer that 64 bits cannot hold. REQUIRES: its digits, with a "-" in front or not.
  static Json long_integer(std::string digits);

  bool is_null() const { return state_.index() == 0; }
  std::optional<bool> boolean() const;
  /// An integer written as one (not 2.0, not -0) that fits. See also integral().
  std::optional<std::int64_t> integer() const;
  std::optional<std::uint64_t> unsigned_integer() const;
  /// The digits of one that 64 bits cannot hold.
  const std::string* long_integer() const;
  /// integer(), and numbers such as 2.0 that some writers use for one.
  std::optional<std::int64_t> integral() const;
  /// Any number; integers beyond 2^53 are rounded.
  std::optional<double> number() const;
  const std::string* text() const { return std::get_if<std::string>(&state_); }
  const Array* array() const { return std::get_if<Array>(&state_); }
  const Object* object() const { return std::get_if<Object>(&state_); }
  Array* array() { return std::get_if<Array>(&state_); }
  Object* object() { return std::get_if<Object>(&state_); }

  /// Member of an object by name (the last, if repeated); null if this is no object or has none.
  /// Linear in the members: iterate over large objects instead.
  const Json* find(std::string_view name) const;
  /// Sets or adds a member. Null becomes an object. REQUIRES: null or an object.
  void set(std::string_view name, Json value);

  /// "null", "boolean", "number", "text", "array", "object": for messages.
  std::string_view kind_name() const;

  /// Equal values; 2 and 2.0 differ, order of members matters.
  bool operator==(const Json& other) const;

 private:
  struct LongInteger {
    std::string digits;
    bool operator==(const LongInteger& other) const = default;
  };

  // Non-negative integers are uint64, negative ones int64, longer ones their digits; -0 is the
  // double -0.0.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, LongInteger, std::string,
               Array, Object>
      state_;
};

/// What to do with a member that an object repeats.
enum class Repeated : std::uint8_t { kLastWins, kRefuse, kKeep };

struct JsonLimits {
  std::size_t bytes = 64u << 20;  ///< longer text is refused before parsing
  int depth = 64;                 ///< deeper nesting is refused
  /// Limit on the number of values; a member counts as two, its name and its value. Without it a
  /// short text, such as a list of zeros, could take twenty to forty times its length in memory.
  /// Parsing takes at most 48 bytes times this number, plus twice the text.
  std::size_t values = std::size_t{1} << 20;
  Repeated repeated = Repeated::kLastWins;
};

/// Parses UTF-8 text. `corrupt` with reason json/syntax, json/utf8, json/too-large, json/too-deep,
/// json/too-many-values or json/repeated-member, and the byte position. Accepts a leading byte
/// order mark and trailing NUL bytes; callers that must refuse them check first.
/// `resource_exhausted` (base/out-of-memory) if memory runs out even within the limits.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

struct JsonStyle {
  int indent = 0;      ///< 0: one line, no spaces; otherwise spaces a level, as Python's indent=
  bool ascii = false;  ///< escape what is not ASCII, as Python's json.dumps
  bool python_spaces = false;  ///< ", " and ": " on one line, as Python's json.dumps without indent
};

/// Text that parse_json() reads back as an equal value. Floats always have a point or an exponent.
/// NaN and infinities, which JSON lacks, become null: callers encode them as text first. Bytes that
/// are not UTF-8 become U+FFFD.
std::string dump_json(const Json& value, const JsonStyle& style = {});

/// The text of a file, with a newline at its end, that parse_json() reads back within `limits`.
/// `invalid_argument`: json/too-large, json/too-deep, json/too-many-values.
Result<std::string> dump_json_file(const Json& value, const JsonLimits& limits,
                                   const JsonStyle& style = {});

}  // namespace cairn
