// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "cairn/base/json.h"
#include "cairn/base/utf8.h"

namespace cairn::inline base {
namespace {

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

std::string dump_json(const Json& value, const JsonStyle& style) {
  std::string out;
  Writer(style, out).value(value);
  return out;
}

}  // namespace cairn::inline base
