// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/value.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "cairn/base/base64.h"
#include "cairn/base/utf8.h"

namespace cairn {
namespace {

constexpr std::array<std::string_view, 7> kTypeNames = {"none",    "bool", "int",  "float",
                                                        "complex", "str",  "bytes"};
static_assert(kTypeNames.size() == std::variant_size_v<Value>);

bool canonical_integer(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return false;
  return digits[0] != '0' || text == "0";
}

template <typename T>
std::optional<T> read_number(std::string_view text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::string float_to_text(double number) {
  if (std::isnan(number)) return "nan";
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

Json typed(std::size_t type, Json value) {
  return Json::Object{{"type", kTypeNames[type]}, {"value", std::move(value)}};
}

Json float_to_json(double number) {
  Json json = typed(Value(number).index(), float_to_text(number));
  if (std::isnan(number)) {
    json.set("bits", fmt::format("{:016x}", std::bit_cast<std::uint64_t>(number)));
  }
  return json;
}

// Escapes make text at most six times as long; only what may be too large is written out to be
// measured.
bool too_large(const Json& json, std::size_t raw_size) {
  return raw_size > kMaxValueBytes / 8 && dump_json(json).size() > kMaxValueBytes;
}

Error bad_json(std::string_view why) {
  return {Code::kCorrupt, "value/bad-json", fmt::format("a stored value is damaged: {}", why)};
}

Result<double> nan_from_json(const Json& json) {
  const Json* bits = json.find("bits");
  const std::string* hex = bits ? bits->text() : nullptr;
  std::uint64_t pattern = 0;
  if (hex && hex->size() == 16) {
    const auto [stop, error] = std::from_chars(hex->data(), hex->data() + 16, pattern, 16);
    const double number = std::bit_cast<double>(pattern);
    if (error == std::errc() && stop == hex->data() + 16 && std::isnan(number)) return number;
  }
  return bad_json("'bits' of a NaN must be its 16 hexadecimal digits");
}

Result<double> float_from_json(const Json& json) {
  const Json* value = json.find("value");
  const std::string* text = value ? value->text() : nullptr;
  if (!text) return bad_json("'value' of a float must be text");
  if (*text == "nan") return nan_from_json(json);
  if (*text == "inf" || *text == "-inf") {
    const double infinity = std::numeric_limits<double>::infinity();
    return text->front() == '-' ? -infinity : infinity;
  }
  const std::optional<double> number = read_number<double>(*text);
  if (!number || !std::isfinite(*number)) return bad_json("'value' of a float is no number");
  return *number;
}

Result<Value> complex_from_json(const Json& json) {
  const Json* value = json.find("value");
  const Json::Array* pair = value ? value->array() : nullptr;
  if (!pair || pair->size() != 2) return bad_json("'value' of a complex must be two floats");
  CAIRN_TRY_ASSIGN(const double real, float_from_json(pair->front()));
  CAIRN_TRY_ASSIGN(const double imag, float_from_json(pair->back()));
  return std::complex<double>(real, imag);
}

Result<Value> text_from_json(std::string_view type, const std::string& text) {
  if (type == "str") return Value(text);
  if (type == "int") {
    auto integer = Integer::parse(text);
    if (!integer) return bad_json("'value' of an int must be decimal digits");
    return Value(*std::move(integer));
  }
  auto data = decode_base64(text);
  if (!data) return bad_json("'value' of bytes must be base64");
  return Value(Bytes{*std::move(data)});
}

std::string quoted(std::string_view data, bool keep_high) {
  std::string out = "\"";
  for (const char c : data) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !keep_high)) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string complex_to_text(std::complex<double> number) {
  const std::string imag = float_to_text(number.imag());
  return fmt::format("({}{}{}j)", float_to_text(number.real()), imag[0] == '-' ? "" : "+", imag);
}

struct ToJson {
  std::size_t type;

  Json operator()(std::monostate) const { return Json::Object{{"type", kTypeNames[type]}}; }
  Json operator()(bool flag) const { return typed(type, flag); }
  Json operator()(const Integer& integer) const { return typed(type, integer.digits()); }
  Json operator()(double number) const { return float_to_json(number); }
  Json operator()(std::complex<double> number) const {
    return typed(type, Json::Array{float_to_json(number.real()), float_to_json(number.imag())});
  }
  Json operator()(const std::string& text) const { return typed(type, text); }
  Json operator()(const Bytes& bytes) const {
    return typed(type, encode_base64(as_bytes(bytes.data)));
  }
};

struct ToText {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(const Integer& integer) const { return integer.digits(); }
  std::string operator()(double number) const { return float_to_text(number); }
  std::string operator()(std::complex<double> number) const { return complex_to_text(number); }
  std::string operator()(const std::string& text) const { return quoted(text, is_utf8(text)); }
  std::string operator()(const Bytes& bytes) const { return "b" + quoted(bytes.data, false); }
};

struct RawSize {
  template <typename T>
  std::size_t operator()(const T&) const {
    return 0;
  }
  std::size_t operator()(const Integer& integer) const { return integer.digits().size(); }
  std::size_t operator()(const std::string& text) const { return text.size(); }
  std::size_t operator()(const Bytes& bytes) const { return bytes.data.size(); }
};

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

Result<Integer> Integer::parse(std::string_view digits) {
  if (digits.size() > kMaxValueBytes || !canonical_integer(digits)) {
    return Error(
        Code::kInvalidArgument, "value/bad-integer",
        fmt::format("'{}' is not an integer in plain decimal digits", digits.substr(0, 40)));
  }
  Integer integer;
  integer.digits_ = digits;
  return integer;
}

std::optional<std::int64_t> Integer::to_int64() const { return read_number<std::int64_t>(digits_); }

std::optional<std::uint64_t> Integer::to_uint64() const {
  return read_number<std::uint64_t>(digits_);
}

std::string_view type_name(const Value& value) { return kTypeNames[value.index()]; }

Result<Json> value_to_json(const Value& value) {
  const std::size_t raw_size = std::visit(RawSize{}, value);
  const std::string* text = std::get_if<std::string>(&value);
  if (text && !is_utf8(*text)) {
    return Error(Code::kInvalidArgument, "value/not-utf8",
                 "a text is not UTF-8; store it as bytes");
  }
  const auto refuse = [raw_size] {
    return Error(
        Code::kInvalidArgument, "value/too-large",
        fmt::format("a value of {} bytes is too large for a leaf that is not an array (at most "
                    "{} as JSON); store it as an array",
                    raw_size, kMaxValueBytes));
  };
  if (raw_size > kMaxValueBytes) return refuse();
  Json json = std::visit(ToJson{value.index()}, value);
  if (too_large(json, raw_size)) return refuse();
  return json;
}

Result<Value> value_from_json(const Json& json) {
  const Json* type_member = json.find("type");
  const std::string* type = type_member ? type_member->text() : nullptr;
  if (!type) return bad_json("it has no 'type'");
  if (*type == "none") return Value();
  if (*type == "float") {
    CAIRN_TRY_ASSIGN(const double number, float_from_json(json));
    return Value(number);
  }
  if (*type == "complex") return complex_from_json(json);
  const Json* value = json.find("value");
  if (*type == "bool") {
    if (value && value->boolean()) return Value(*value->boolean());
    return bad_json("'value' of a bool must be true or false");
  }
  if (std::find(kTypeNames.begin(), kTypeNames.end(), *type) == kTypeNames.end()) {
    return bad_json(fmt::format("type '{}' is unknown", type->substr(0, 40)));
  }
  if (!value || !value->text()) return bad_json("'value' must be text");
  return text_from_json(*type, *value->text());
}

std::string value_to_text(const Value& value) { return std::visit(ToText{}, value); }

bool same_value(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
  if (const auto* x = std::get_if<std::complex<double>>(&a)) {
    const auto& y = std::get<std::complex<double>>(b);
    return same_bits(x->real(), y.real()) && same_bits(x->imag(), y.imag());
  }
  return a == b;
}

}  // namespace cairn
