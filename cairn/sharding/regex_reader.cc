// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/regex_reader.h"

#include <fmt/format.h>

#include "cairn/base/utf8.h"

namespace cairn {
namespace {

using Kind = RegexEscape::Kind;

bool is_octal(char32_t c) { return c >= '0' && c <= '7'; }
bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int hex_digit(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<int>(c - 'A') + 10;
  return -1;
}

// The control character that a letter stands for; 0 for none.
char32_t control(char32_t letter) {
  constexpr std::string_view kLetters = "abfnrtv";
  constexpr std::string_view kCodes = "\a\b\f\n\r\t\v";
  const auto found = kLetters.find(static_cast<char>(letter));
  return letter > 'z' || found == std::string_view::npos ? 0 : static_cast<char32_t>(kCodes[found]);
}

bool is_one_of(std::string_view letters, char32_t c) {
  return c < 0x80 && letters.find(static_cast<char>(c)) != std::string_view::npos;
}

}  // namespace

Result<RegexReader> RegexReader::over(std::string_view pattern) {
  std::u32string text;
  while (!pattern.empty()) {
    const Utf8Char c = decode_utf8(pattern);
    if (c.size == 0) {
      return Error(Code::kInvalidArgument, "regex/utf8",
                   fmt::format("the expression is not UTF-8 at position {}", text.size()));
    }
    text.push_back(c.code);
    pattern.remove_prefix(c.size);
  }
  return RegexReader(std::move(text));
}

bool RegexReader::take(char32_t c) {
  if (!sees(c)) return false;
  ++at_;
  return true;
}

bool RegexReader::sees_one_of(std::string_view ascii) const {
  return !done() && is_one_of(ascii, text_[at_]);
}

Error RegexReader::syntax(std::string_view what, std::size_t position) const {
  return Error(Code::kInvalidArgument, "regex/syntax",
               fmt::format("{} at position {}", what, position));
}

Error RegexReader::unsupported(std::string_view what, std::size_t position) const {
  return Error(
      Code::kInvalidArgument, "regex/unsupported",
      fmt::format("{} at position {} is not supported; write it another way", what, position));
}

Result<char32_t> RegexReader::hex(std::size_t digits, std::size_t start) {
  char32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const int digit = done() ? -1 : hex_digit(text_[at_]);
    if (digit < 0) return syntax("incomplete escape", start);
    value = value * 16 + static_cast<char32_t>(digit);
    ++at_;
  }
  if (value > 0x10FFFF) return syntax("a character beyond Unicode", start);
  if (value >= 0xD800 && value <= 0xDFFF) return unsupported("half of a surrogate pair", start);
  return value;
}

char32_t RegexReader::octal(char32_t value, std::size_t most) {
  for (; most > 0 && !done() && is_octal(text_[at_]); --most) value = value * 8 + (next() - '0');
  return value;
}

Result<RegexEscape> RegexReader::number(char32_t first, RegexPlace place, std::size_t start) {
  const auto literal = [&](char32_t value) -> Result<RegexEscape> {
    if (value > 0377) return syntax("octal escape beyond 0377", start);
    return RegexEscape{Kind::kLiteral, value};
  };
  if (first == '0' || (place == RegexPlace::kInSet && is_octal(first))) {
    return literal(octal(first - '0', 2));
  }
  if (place == RegexPlace::kInSet) return syntax("bad escape", start);
  char32_t value = first - '0';
  if (sees_digit()) {
    const char32_t second = next();
    if (is_octal(first) && is_octal(second) && !done() && is_octal(text_[at_])) {
      return literal(octal(value * 8 + (second - '0'), 1));
    }
    value = value * 10 + (second - '0');
  }
  return RegexEscape{Kind::kReference, value};
}

Result<RegexEscape> RegexReader::escape(RegexPlace place) {
  const std::size_t start = at_ - 1;
  if (done()) return syntax("a backslash at the end", start);
  const char32_t c = next();
  if (is_one_of("dDsSwW", c)) return RegexEscape{Kind::kCategory, c};
  if (is_one_of("AbBZ", c) && place == RegexPlace::kOutside) return RegexEscape{Kind::kAnchor, c};
  if (const char32_t code = control(c)) return RegexEscape{Kind::kLiteral, code};
  if (c >= '0' && c <= '9') return number(c, place, start);
  if (is_one_of("xuU", c)) {
    CAIRN_TRY_ASSIGN(const char32_t code, hex(c == 'x' ? 2 : c == 'u' ? 4 : 8, start));
    return RegexEscape{Kind::kLiteral, code};
  }
  if (c == 'N') return unsupported("a character by its name", start);
  if (is_letter(c)) return syntax("bad escape", start);
  return RegexEscape{Kind::kLiteral, c};
}

}  // namespace cairn
