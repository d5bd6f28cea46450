// SPDX-License-Identifier: Apache-2.0
// The small pieces of Python's regular expressions: flags, names of groups, braces, comments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/sharding/regex_reader.h"

namespace cairn {

/// Flags that change how an expression is read.
struct RegexFlags {
  bool fold = false;     ///< i: without regard to case
  bool verbose = false;  ///< x: white space and comments do not count
};

/// The letters of `(?i-s:`, or of `(?i)`, which is for all of the expression.
struct RegexFlagLetters {
  std::string on;
  std::string off;
  bool for_all = false;

  RegexFlags apply(const RegexFlags& flags) const;
  /// Those that PCRE2 has to know: the same letters, but for x, which is done here, and u, which
  /// says nothing.
  std::string pcre_on() const;
  std::string pcre_off() const;
};

/// At its first letter, or '-'. `regex/syntax`, `regex/unsupported` (a).
Result<RegexFlagLetters> read_flags(RegexReader& reader);

struct RegexRepeat {
  std::uint64_t least = 0;
  std::optional<std::uint64_t> most;
};

/// {m}, {m,}, {,n} or {m,n}, whose '{' has been taken. Anything else is a brace that stands for
/// itself: nothing, and nothing is taken. `regex/syntax`, `regex/unsupported` (over 65535).
Result<std::optional<RegexRepeat>> read_braces(RegexReader& reader);

/// Up to `end`, which is taken too. `regex/syntax`, `regex/unsupported` (not ASCII).
Result<std::string> read_group_name(RegexReader& reader, char32_t end);

/// The rest of `(?#...)`. `regex/syntax`.
Result<void> skip_comment(RegexReader& reader);

}  // namespace cairn
