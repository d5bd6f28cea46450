// SPDX-License-Identifier: Apache-2.0
// Reads the text of a regular expression in Python's syntax, character by character. `regex_set.h`
// writes characters as PCRE2 has them, `python_regex.h` does the whole.
#pragma once

#include <string>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

/// What a backslash and what follows it mean.
struct RegexEscape {
  enum class Kind { kLiteral, kCategory, kAnchor, kReference };
  Kind kind = Kind::kLiteral;
  /// The character; the letter of the category (d, D, s, S, w, W) or anchor (A, b, B, Z); the
  /// number of the group.
  char32_t code = 0;
};

enum class RegexPlace { kOutside, kInSet };

/// Positions count characters, as Python's do. Threading: compatible.
class RegexReader {
 public:
  /// `invalid_argument` (regex/utf8).
  static Result<RegexReader> over(std::string_view pattern);

  bool done() const { return at_ == text_.size(); }
  std::size_t position() const { return at_; }
  void seek(std::size_t position) { at_ = position; }
  /// The next character is `c`.
  bool sees(char32_t c) const { return !done() && text_[at_] == c; }
  bool sees_one_of(std::string_view ascii) const;
  bool sees_digit() const { return sees_one_of("0123456789"); }
  /// Takes the next character if it is `c`.
  bool take(char32_t c);
  /// REQUIRES: !done().
  char32_t next() { return text_[at_++]; }

  /// What follows a backslash that has been taken.
  Result<RegexEscape> escape(RegexPlace place);

  /// Python refuses it too (regex/syntax), or only we do (regex/unsupported).
  Error syntax(std::string_view what, std::size_t position) const;
  Error unsupported(std::string_view what, std::size_t position) const;

 private:
  explicit RegexReader(std::u32string text) : text_(std::move(text)) {}
  Result<char32_t> hex(std::size_t digits, std::size_t start);
  /// Up to `most` octal digits after those that make `value`.
  char32_t octal(char32_t value, std::size_t most);
  Result<RegexEscape> number(char32_t first, RegexPlace place, std::size_t start);

  std::u32string text_;
  std::size_t at_ = 0;
};

}  // namespace cairn
