// SPDX-License-Identifier: Apache-2.0
// Python and PCRE2 differ in what is white space, and some letters are one letter without regard to
// case in Python alone.
#include "cairn/sharding/regex_set.h"

#include <algorithm>

#include <fmt/format.h>

namespace cairn {
namespace {

constexpr std::string_view kSpace =
    R"(\x09-\x0d\x1c-\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f})"
    R"(\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x00-\x08\x0e-\x1b\x21-\x84\x86-\x9f\xa1-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";

constexpr std::u32string_view kSameLetters[] = {U"iI\x130\x131", U"\x390\x1fd3", U"\x3b0\x1fe3",
                                                U"\xfb05\xfb06"};

void append_code(std::string& out, char32_t code) {
  const bool plain = (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
                     (code >= '0' && code <= '9') || code == '_' || code == '/';
  if (plain) {
    out += static_cast<char>(code);
  } else {
    out += fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(code));
  }
}

// What a range of characters also holds without regard to case, unknown to PCRE2.
std::u32string same_letters(char32_t first, char32_t last) {
  std::u32string letters;
  for (const std::u32string_view same : kSameLetters) {
    const bool held =
        std::any_of(same.begin(), same.end(), [&](char32_t c) { return first <= c && c <= last; });
    if (held) letters += same;
  }
  return letters;
}

struct Member {
  bool is_category = false;
  char32_t code = 0;
};

Result<Member> read_member(RegexReader& reader, char32_t first) {
  if (first != '\\') return Member{false, first};
  CAIRN_TRY_ASSIGN(const RegexEscape escape, reader.escape(RegexPlace::kInSet));
  return Member{escape.kind == RegexEscape::Kind::kCategory, escape.code};
}

void append_member(std::string& out, const Member& member) {
  if (!member.is_category) {
    append_code(out, member.code);
  } else if (member.code == 's' || member.code == 'S') {
    out += member.code == 's' ? kSpace : kNotSpace;
  } else {
    out += {'\\', static_cast<char>(member.code)};
  }
}

}  // namespace

void append_literal(std::string& out, char32_t code, bool fold) {
  const std::u32string same = fold ? same_letters(code, code) : std::u32string();
  if (same.empty()) {
    append_code(out, code);
    return;
  }
  out += '[';
  for (const char32_t letter : same) append_code(out, letter);
  out += ']';
}

void append_category(std::string& out, char32_t letter) {
  if (letter == 's' || letter == 'S') {
    out += fmt::format("[{}]", letter == 's' ? kSpace : kNotSpace);
  } else {
    out += {'\\', static_cast<char>(letter)};
  }
}

Result<void> append_set(RegexReader& reader, std::string& out, bool fold) {
  const std::size_t start = reader.position() - 1;
  out += reader.take('^') ? "[^" : "[";
  std::u32string same;
  for (bool empty = true;; empty = false) {
    if (reader.done()) return reader.syntax("unterminated character set", start);
    const std::size_t at = reader.position();
    const char32_t first = reader.next();
    if (first == ']' && !empty) break;
    CAIRN_TRY_ASSIGN(const Member from, read_member(reader, first));
    Member to = from;
    bool dash_at_end = false;
    if (reader.take('-')) {
      if (reader.done()) return reader.syntax("unterminated character set", start);
      dash_at_end = reader.take(']');
      if (!dash_at_end) {
        CAIRN_TRY_ASSIGN(to, read_member(reader, reader.next()));
        if (from.is_category || to.is_category || to.code < from.code) {
          return reader.syntax("bad character range", at);
        }
      }
    }
    append_member(out, from);
    if (to.code != from.code) {
      out += '-';
      append_code(out, to.code);
    }
    if (fold && !from.is_category) same += same_letters(from.code, to.code);
    if (dash_at_end) {
      append_code(out, '-');
      break;
    }
  }
  for (const char32_t letter : same) append_code(out, letter);
  out += ']';
  return {};
}

}  // namespace cairn
