// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cairn/base/utf8.h"

namespace cairn {
namespace {

Error corrupt(const char* reason, std::string message) {
  return {Code::kCorrupt, reason, std::move(message)};
}

// Names are hostile and may be long.
std::string shorten(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  if (name.size() <= kLongest) return std::string(name);
  const std::string_view front = name.substr(0, kLongest);
  return std::string(front.substr(0, valid_utf8_prefix(front))) + "...";
}

// An iterator whose position everybody sees: the parser tells its listener what it read, not where.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit Cursor(const char** at) : at_(at) {}
  reference operator*() const { return **at_; }
  Cursor& operator++() {
    ++*at_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return *at_ == *other.at_; }

 private:
  const char** at_;
};

// Finds repeated members of finished objects. Sorts, because a hash table can be attacked.
class RepeatedMembers {
 public:
  // The name of one of them, or null.
  const std::string* find(const Json::Object& members) {
    if (sort(members)) return nullptr;
    const auto same = [&](std::size_t a, std::size_t b) {
      return members[a].first == members[b].first;
    };
    const auto twin = std::ranges::adjacent_find(order_, same);
    return twin == order_.end() ? nullptr : &members[*twin].first;
  }

  // Leaves each name where it came first, with the value that came last.
  void merge(Json::Object& members) {
    if (find(members) == nullptr) return;
    std::vector<bool> dropped(members.size());
    for (std::size_t i = 1, first = order_[0]; i < order_.size(); ++i) {
      const std::size_t at = order_[i];
      if (members[at].first != members[first].first) {
        first = at;
        continue;
      }
      members[first].second = std::move(members[at].second);
      dropped[at] = true;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (dropped[i]) continue;
      if (kept != i) members[kept] = std::move(members[i]);
      ++kept;
    }
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(kept), members.end());
  }

 private:
  // True if the members are in strict order already, so that none is repeated.
  bool sort(const Json::Object& members) {
    const auto out_of_order = [](const auto& a, const auto& b) { return a.first >= b.first; };
    if (std::ranges::adjacent_find(members, out_of_order) == members.end()) return true;
    order_.resize(members.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::ranges::sort(order_, [&](std::size_t a, std::size_t b) {
      const int way = members[a].first.compare(members[b].first);
      return way != 0 ? way < 0 : a < b;
    });
    return false;
  }

  std::vector<std::size_t> order_;
};

// Listens to the parser and builds the value in place. `open_` points into vectors that do not grow
// while the pointer is there: only the innermost container does.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Builder(std::string_view text, const JsonLimits& limits)
      : text_(text), limits_(limits), at_(text.data()) {}

  Result<Json> build() {
    const char* end = text_.data() + text_.size();
    if (!nlohmann::json::sax_parse(Cursor(&at_), Cursor(&end), this)) return *std::move(error_);
    // To the parser a NUL ends the text.
    if (text_.find_first_not_of('\0', position()) != std::string_view::npos) {
      return corrupt("json/syntax",
                     fmt::format("JSON text goes on after a NUL, at byte {}", position()));
    }
    return std::move(root_);
  }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  // Non-negative integers arrive unsigned, so a zero here was written -0.
  bool number_integer(number_integer_t value) { return add(value == 0 ? Json(-0.0) : Json(value)); }
  bool number_unsigned(number_unsigned_t value) { return add(Json(value)); }
  bool number_float(number_float_t value, const string_t& text) {
    const bool is_integer = text.find_first_of(".eE") == string_t::npos;
    return add(is_integer ? Json::long_integer(text) : Json(value));
  }
  bool string(string_t& value) { return add(Json(std::move(value))); }
  bool binary(binary_t&) { return false; }

  bool start_object(std::size_t) { return enter(Json(Json::Object())); }
  bool key(string_t& name) {
    if (!count()) return false;
    open_.back()->object()->emplace_back(std::move(name), Json());
    return true;
  }
  bool end_object() {
    Json::Object& members = *open_.back()->object();
    open_.pop_back();
    if (limits_.repeated == Repeated::kLastWins) repeated_.merge(members);
    if (limits_.repeated != Repeated::kRefuse) return true;
    const std::string* name = repeated_.find(members);
    if (name == nullptr) return true;
    return fail("json/repeated-member",
                fmt::format("JSON object that ends at byte {} repeats member '{}'", position(),
                            shorten(*name)));
  }

  bool start_array(std::size_t) { return enter(Json(Json::Array())); }
  bool end_array() {
    open_.pop_back();
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) {
    return fail("json/syntax", fmt::format("not JSON at byte {}: {}", position, what(error)));
  }

 private:
  std::size_t position() const { return static_cast<std::size_t>(at_ - text_.data()); }

  bool fail(const char* reason, std::string message) {
    error_ = corrupt(reason, std::move(message));
    return false;
  }

  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (Json::Array* items = open_.back()->array()) return items->emplace_back(std::move(value));
    return open_.back()->object()->back().second = std::move(value);
  }
  bool count() {
    if (++values_ <= limits_.values) return true;
    return fail("json/too-many-values",
                fmt::format("JSON text has more than {} values, up to byte {} of {}",
                            limits_.values, position(), text_.size()));
  }
  bool add(Json value) {
    if (!count()) return false;
    place(std::move(value));
    return true;
  }
  bool enter(Json container) {
    if (open_.size() >= static_cast<std::size_t>(std::max(limits_.depth, 0))) {
      return fail("json/too-deep", fmt::format("JSON is nested deeper than {} levels at byte {}",
                                               limits_.depth, position()));
    }
    if (!count()) return false;
    open_.push_back(&place(std::move(container)));
    return true;
  }

  // The parser's own words, without the parts that quote the text at any length.
  static std::string what(const nlohmann::json::exception& error) {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow) return "a number is too large for a double";
    std::string_view message = error.what();
    const std::size_t begin = message.find(" - ");
    if (begin != std::string_view::npos) message.remove_prefix(begin + 3);
    return shorten(message.substr(0, message.find(';')));
  }

  std::string_view text_;
  JsonLimits limits_;
  const char* at_;
  std::size_t values_ = 0;
  Json root_;
  std::vector<Json*> open_;
  RepeatedMembers repeated_;
  std::optional<Error> error_;
};

// Takes what one value needs from what the limits leave.
Result<void> spend(const Json& value, int depth, std::size_t& values) {
  const Json::Array* items = value.array();
  const Json::Object* members = value.object();
  const std::size_t needed = 1 + (members != nullptr ? members->size() : 0);
  if (values < needed) {
    return Error(Code::kInvalidArgument, "json/too-many-values",
                 "there are too many values for one JSON text");
  }
  values -= needed;
  if ((items != nullptr || members != nullptr) && depth <= 0) {
    return Error(Code::kInvalidArgument, "json/too-deep", "the JSON text would be nested too deep");
  }
  for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
    CAIRN_TRY(spend((*items)[i], depth - 1, values));
  }
  for (std::size_t i = 0; members != nullptr && i < members->size(); ++i) {
    CAIRN_TRY(spend((*members)[i].second, depth - 1, values));
  }
  return {};
}

constexpr std::string_view kEscapeDigits = "0123456789abcdef";

class Writer {
 public:
  Writer(const JsonStyle& style, std::string& out) : style_(style), out_(out) {}

  void value(const Json& json) {
    if (const auto* text = json.text()) {
      write_text(*text);
    } else if (const auto* items = json.array()) {
      write_list('[', *items, ']', [this](const Json& item) { value(item); });
    } else if (const auto* members = json.object()) {
      write_list('{', *members, '}', [this](const auto& member) { write_member(member); });
    } else {
      write_scalar(json);
    }
  }

 private:
  template <typename List, typename WriteItem>
  void write_list(char open, const List& list, char close, const WriteItem& write_item) {
    out_ += open;
    ++depth_;
    bool first = true;
    for (const auto& item : list) {
      if (!first) out_ += style_.python_spaces && style_.indent == 0 ? ", " : ",";
      first = false;
      new_line();
      write_item(item);
    }
    --depth_;
    if (!list.empty()) new_line();
    out_ += close;
  }

  void write_member(const Json::Object::value_type& member) {
    write_text(member.first);
    out_ += style_.python_spaces || style_.indent > 0 ? ": " : ":";
    value(member.second);
  }

  void new_line() {
    if (style_.indent <= 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(style_.indent) * depth_, ' ');
  }

  void write_scalar(const Json& json) {
    if (const auto flag = json.boolean()) {
      out_ += *flag ? "true" : "false";
    } else if (const auto whole = json.unsigned_integer()) {
      append_number(*whole);
    } else if (const auto negative = json.integer()) {
      append_number(*negative);
    } else if (const std::string* digits = json.long_integer()) {
      out_ += *digits;
    } else if (const auto number = json.number()) {
      write_double(*number);
    } else {
      out_ += "null";
    }
  }

  // As Python's repr: the fewest digits that give the value back, an exponent below 1e-4 and from
  // 1e16.
  void write_double(double number) {
    if (!std::isfinite(number)) {
      out_ += "null";
      return;
    }
    const double size = std::abs(number);
    const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
    const std::size_t begin = out_.size();
    append_number(number, plain ? std::chars_format::fixed : std::chars_format::scientific);
    if (plain && out_.find('.', begin) == std::string::npos) out_ += ".0";
  }

  template <typename... Number>
  void append_number(Number... number) {
    std::array<char, 40> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number...).ptr;
    out_.append(digits.data(), end);
  }

  void write_text(std::string_view text) {
    out_ += '"';
    while (!text.empty()) {
      const std::size_t plain = plain_prefix(text);
      out_ += text.substr(0, plain);
      text.remove_prefix(plain);
      if (text.empty()) break;
      text.remove_prefix(write_special(text));
    }
    out_ += '"';
  }

  static std::size_t plain_prefix(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\') break;
      ++at;
    }
    return at;
  }

  // Writes the first character, which is not a plain one; returns how many bytes it had.
  std::size_t write_special(std::string_view text) {
    const Utf8Char next = decode_utf8(text);
    if (next.size == 1) {
      write_ascii(text[0]);
      return 1;
    }
    const std::uint32_t code = next.size == 0 ? kReplacement : next.code;
    if (style_.ascii) {
      write_escaped(code);
    } else {
      out_ += next.size == 0 ? kReplacementText : text.substr(0, next.size);
    }
    return next.size == 0 ? 1 : next.size;
  }

  void write_ascii(char c) {
    constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    const std::size_t at = kSpecial.find(c);
    if (at != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[at];
    } else if (c == 0x7f && !style_.ascii) {
      out_ += c;
    } else {
      write_unit(static_cast<unsigned char>(c));
    }
  }

  void write_escaped(std::uint32_t code) {
    if (code < 0x10000) return write_unit(code);
    write_unit(0xd800 + ((code - 0x10000) >> 10));
    write_unit(0xdc00 + ((code - 0x10000) & 0x3ff));
  }

  void write_unit(std::uint32_t unit) {
    out_ += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out_ += kEscapeDigits[(unit >> shift) & 15];
  }

  static constexpr std::uint32_t kReplacement = 0xfffd;
  static constexpr std::string_view kReplacementText = "\xef\xbf\xbd";

  const JsonStyle& style_;
  std::string& out_;
  std::size_t depth_ = 0;
};

}  // namespace

Json::Json(std::int64_t value) {
  if (value < 0) {
    state_ = value;
  } else {
    state_ = static_cast<std::uint64_t>(value);
  }
}

Json Json::long_integer(std::string digits) {
  Json made;
  made.state_ = LongInteger{std::move(digits)};
  return made;
}

std::optional<bool> Json::boolean() const {
  const bool* value = std::get_if<bool>(&state_);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::int64_t> Json::integer() const {
  if (const auto* negative = std::get_if<std::int64_t>(&state_)) return *negative;
  const auto* whole = std::get_if<std::uint64_t>(&state_);
  if (whole == nullptr || *whole > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(*whole);
}

std::optional<std::uint64_t> Json::unsigned_integer() const {
  const auto* whole = std::get_if<std::uint64_t>(&state_);
  return whole != nullptr ? std::optional(*whole) : std::nullopt;
}

const std::string* Json::long_integer() const {
  const auto* integer = std::get_if<LongInteger>(&state_);
  return integer != nullptr ? &integer->digits : nullptr;
}

std::optional<std::int64_t> Json::integral() const {
  const auto* real = std::get_if<double>(&state_);
  if (real == nullptr) return integer();
  // -2^63 and 2^63 are exact doubles; the comparison also refuses NaN.
  if (!(*real >= -0x1p63 && *real < 0x1p63)) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(*real);
  return static_cast<double>(whole) == *real ? std::optional(whole) : std::nullopt;
}

std::optional<double> Json::number() const {
  if (const auto* real = std::get_if<double>(&state_)) return *real;
  if (const auto* whole = std::get_if<std::uint64_t>(&state_)) return static_cast<double>(*whole);
  if (const auto* negative = std::get_if<std::int64_t>(&state_))
    return static_cast<double>(*negative);
  const std::string* digits = long_integer();
  if (digits == nullptr) return std::nullopt;
  double value = 0;
  std::from_chars(digits->data(), digits->data() + digits->size(), value);
  return value;
}

const Json* Json::find(std::string_view name) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->rbegin(), members->rend(),
                                  [&](const auto& member) { return member.first == name; });
  return found != members->rend() ? &found->second : nullptr;
}

void Json::set(std::string_view name, Json value) {
  if (is_null()) state_ = Object();
  if (Json* present = const_cast<Json*>(find(name))) {
    *present = std::move(value);
  } else {
    object()->emplace_back(std::string(name), std::move(value));
  }
}

std::string_view Json::kind_name() const {
  constexpr std::string_view kNames[] = {"null",   "boolean", "number", "number", "number",
                                         "number", "text",    "array",  "object"};
  return kNames[state_.index()];
}

bool Json::operator==(const Json& other) const { return state_ == other.state_; }

std::string dump_json(const Json& value, const JsonStyle& style) {
  std::string out;
  Writer(style, out).value(value);
  return out;
}

Result<std::string> dump_json_file(const Json& value, const JsonLimits& limits,
                                   const JsonStyle& style) {
  std::size_t left = limits.values;
  CAIRN_TRY(spend(value, limits.depth, left));
  std::string text = dump_json(value, style) + "\n";
  if (text.size() <= limits.bytes) return text;
  return Error(
      Code::kInvalidArgument, "json/too-large",
      fmt::format("JSON text of {} bytes, more than the limit of {}", text.size(), limits.bytes));
}

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return corrupt("json/too-large", fmt::format("JSON text of {} bytes is above the limit of {}",
                                                 text.size(), limits.bytes));
  }
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid < text.size()) {
    return corrupt("json/utf8", fmt::format("JSON text is not UTF-8 at byte {}", valid));
  }
  try {
    return Builder(text, limits).build();
  } catch (const std::exception&) {
    return Error(Code::kResourceExhausted, "base/out-of-memory",
                 fmt::format("no memory to parse {} bytes of JSON", text.size()));
  }
}

}  // namespace cairn
