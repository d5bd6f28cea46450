// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/regex_tokens.h"

#include <algorithm>

namespace cairn {
namespace {

constexpr std::uint64_t kMaxRepeat = 65535;
constexpr std::uint64_t kFar = kMaxRepeat + 1;

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

std::string for_pcre(std::string letters) {
  std::erase_if(letters, [](char c) { return c == 'x' || c == 'u'; });
  return letters;
}

Result<std::string> letters_until(RegexReader& reader, std::string_view ends) {
  const std::size_t start = reader.position();
  std::string letters;
  while (!reader.done() && !reader.sees_one_of(ends)) {
    if (!reader.sees_one_of("aiLmsux")) return reader.syntax("unknown flag", reader.position());
    letters += static_cast<char>(reader.next());
  }
  if (reader.done()) return reader.syntax("missing -, : or )", reader.position());
  if (has(letters, 'L')) return reader.syntax("flag L, which is for bytes,", start);
  if (has(letters, 'a')) return reader.unsupported("flag a", start);
  return letters;
}

}  // namespace

RegexFlags RegexFlagLetters::apply(const RegexFlags& flags) const {
  return {(flags.fold || has(on, 'i')) && !has(off, 'i'),
          (flags.verbose || has(on, 'x')) && !has(off, 'x')};
}

std::string RegexFlagLetters::pcre_on() const { return for_pcre(on); }
std::string RegexFlagLetters::pcre_off() const { return for_pcre(off); }

Result<RegexFlagLetters> read_flags(RegexReader& reader) {
  RegexFlagLetters letters;
  CAIRN_TRY_ASSIGN(letters.on, letters_until(reader, "-:)"));
  letters.for_all = reader.take(')');
  if (letters.for_all || reader.take(':')) return letters;
  reader.next();
  CAIRN_TRY_ASSIGN(letters.off, letters_until(reader, ":"));
  if (letters.off.empty()) return reader.syntax("missing flag", reader.position());
  if (has(letters.off, 'u')) return reader.syntax("flag u turned off", reader.position());
  if (letters.off.find_first_of(letters.on) != std::string::npos) {
    return reader.syntax("flag turned on and off", reader.position());
  }
  reader.next();
  return letters;
}

Result<std::optional<RegexRepeat>> read_braces(RegexReader& reader) {
  const std::size_t inside = reader.position();
  const auto number = [&]() -> std::optional<std::uint64_t> {
    if (!reader.sees_digit()) return std::nullopt;
    std::uint64_t value = 0;
    while (reader.sees_digit()) value = std::min(value * 10 + (reader.next() - '0'), kFar);
    return value;
  };
  const auto least = number();
  const bool comma = reader.take(',');
  const auto most = comma ? number() : least;
  if (!reader.take('}') || (!comma && !least)) {
    reader.seek(inside);
    return std::optional<RegexRepeat>();
  }
  if (std::max(least.value_or(0), most.value_or(0)) > kMaxRepeat) {
    return reader.unsupported("a repeat of more than 65535 times", inside - 1);
  }
  if (most && *most < least.value_or(0)) {
    return reader.syntax("min repeat greater than max repeat", inside - 1);
  }
  return std::optional(RegexRepeat{least.value_or(0), most});
}

Result<std::string> read_group_name(RegexReader& reader, char32_t end) {
  const std::size_t start = reader.position();
  std::string name;
  while (!reader.done() && !reader.sees(end)) {
    const char32_t c = reader.next();
    if (c >= 0x80) return reader.unsupported("a group name that is not ASCII", start);
    const bool digit = c >= '0' && c <= '9';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (!digit || name.empty())) {
      return reader.syntax("bad character in group name", start);
    }
    name += static_cast<char>(c);
  }
  if (!reader.take(end) || name.empty()) return reader.syntax("missing group name", start);
  return name;
}

// As in Python, a backslash takes the next character with it, even the parenthesis.
Result<void> skip_comment(RegexReader& reader) {
  while (!reader.done()) {
    const char32_t c = reader.next();
    if (c == ')') return {};
    if (c == '\\' && !reader.done()) reader.next();
  }
  return reader.syntax("missing ), unterminated comment", reader.position());
}

}  // namespace cairn
