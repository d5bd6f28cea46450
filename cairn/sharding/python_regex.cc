// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/python_regex.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cairn/sharding/regex_reader.h"

namespace cairn::inline sharding {
namespace {

constexpr int kMaxDepth = 100;
constexpr std::uint64_t kMaxRepeat = 65535;
constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;

// How many characters an expression can match.
struct Width {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

Width in_row(Width a, Width b) {
  return {std::min(a.least + b.least, kEndless), std::min(a.most + b.most, kEndless)};
}

Width either(Width a, Width b) { return {std::min(a.least, b.least), std::max(a.most, b.most)}; }

struct Repeat {
  std::uint64_t least = 0;
  std::optional<std::uint64_t> most;
};

Width repeated(Width width, const Repeat& repeat) {
  const auto times = [](std::uint64_t size, std::uint64_t count) {
    return size != 0 && count >= kEndless / size ? kEndless : size * count;
  };
  return {times(width.least, repeat.least), times(width.most, repeat.most.value_or(kEndless))};
}

struct Flags {
  bool fold = false;  // i
  bool verbose = false;
};

// What the last part of a sequence was decides whether it can be repeated.
enum class Part { kNone, kPlain, kAnchor, kRepeat };

struct Sequence {
  Width before;  // all but the last part
  Width last;
  Part part = Part::kNone;
  std::size_t begin = 0;  // of the last part, in the output

  void add(Part kind, Width width) {
    before = in_row(before, last);
    last = width;
    part = kind;
  }
};

// The letters of (?i-s:...), each as PCRE2 and Python both spell it.
struct FlagLetters {
  std::string on;
  std::string off;
  bool for_all = false;  // (?i)

  Flags apply(Flags flags) const {
    const auto has = [](const std::string& letters, char c) {
      return letters.find(c) != std::string::npos;
    };
    return {(flags.fold || has(on, 'i')) && !has(off, 'i'),
            (flags.verbose || has(on, 'x')) && !has(off, 'x')};
  }
  // White space is left out here, not by PCRE2; text is Unicode as it is.
  static std::string for_pcre(std::string letters) {
    std::erase_if(letters, [](char c) { return c == 'x' || c == 'u'; });
    return letters;
  }
};

class Translator {
 public:
  explicit Translator(RegexReader reader) : reader_(std::move(reader)) {}
  Result<std::string> run();

 private:
  Result<Flags> flags_for_all();
  Result<Width> alternatives(const Flags& flags, int depth);
  Result<Width> sequence(const Flags& flags, int depth);
  Result<void> part(Sequence& done, const Flags& flags, int depth);
  Result<bool> skip_space(const Flags& flags);
  Result<void> escape(Sequence& done, const Flags& flags);
  Result<void> repeat(Sequence& done, const Repeat& repeat, std::size_t start);
  Result<std::optional<Repeat>> braces(std::size_t start);

  Result<void> group(Sequence& done, const Flags& flags, int depth);
  Result<void> python_group(Sequence& done, const Flags& flags, int depth);
  Result<void> capture(Sequence& done, const Flags& flags, int depth);
  Result<void> enclosed(Sequence& done, const Flags& flags, int depth);
  Result<void> look(Sequence& done, const Flags& flags, int depth);
  Result<void> condition(Sequence& done, const Flags& flags, int depth);
  Result<void> skip_comment();
  Result<FlagLetters> flag_letters();
  Result<std::string> letters_until(std::string_view ends, std::size_t start);

  Result<std::string> name(char32_t end);
  Result<void> reference(Sequence& done, std::size_t number, const Flags& flags);
  Result<void> check_look_behind(std::size_t number) const;
  bool is_closed(std::size_t number) const {
    return number < groups_.size() && groups_[number].has_value();
  }
  Error syntax_here(std::string_view what) const {
    return reader_.syntax(what, reader_.position());
  }

  RegexReader reader_;
  std::string out_;
  std::vector<std::optional<Width>> groups_{Width{}};  // by number; empty while open
  std::map<std::string, std::size_t, std::less<>> names_;
  std::map<std::size_t, std::size_t> conditions_;  // where a group is asked about
  std::optional<std::size_t> look_behind_;         // how many groups there were when it began
};

Result<std::string> Translator::run() {
  CAIRN_TRY_ASSIGN(const Flags flags, flags_for_all());
  CAIRN_TRY(alternatives(flags, 0));
  if (!reader_.done()) return syntax_here("unbalanced parenthesis");
  for (const auto& [number, position] : conditions_) {
    if (number >= groups_.size()) return reader_.syntax("invalid group reference", position);
  }
  return std::move(out_);
}

Result<Flags> Translator::flags_for_all() {
  Flags flags;
  while (true) {
    CAIRN_TRY_ASSIGN(const bool skipped, skip_space(flags));
    if (skipped) continue;
    const std::size_t start = reader_.position();
    if (!reader_.take('(') || !reader_.take('?')) {
      reader_.seek(start);
      return flags;
    }
    if (reader_.take('#')) {
      CAIRN_TRY(skip_comment());
      continue;
    }
    if (!reader_.sees_one_of("aiLmsux")) {
      reader_.seek(start);
      return flags;
    }
    CAIRN_TRY_ASSIGN(const FlagLetters letters, flag_letters());
    if (!letters.for_all) {
      reader_.seek(start);
      return flags;
    }
    flags = letters.apply(flags);
    if (const std::string on = FlagLetters::for_pcre(letters.on); !on.empty()) {
      out_ += fmt::format("(?{})", on);
    }
  }
}

Result<Width> Translator::alternatives(const Flags& flags, int depth) {
  CAIRN_TRY_ASSIGN(Width width, sequence(flags, depth));
  while (reader_.take('|')) {
    out_ += '|';
    CAIRN_TRY_ASSIGN(const Width other, sequence(flags, depth));
    width = either(width, other);
  }
  return width;
}

Result<Width> Translator::sequence(const Flags& flags, int depth) {
  if (depth > kMaxDepth) return reader_.unsupported("such deep nesting", reader_.position());
  Sequence done;
  while (!reader_.done() && !reader_.sees_one_of("|)")) {
    CAIRN_TRY_ASSIGN(const bool skipped, skip_space(flags));
    if (skipped) continue;
    const std::size_t begin = out_.size();
    CAIRN_TRY(part(done, flags, depth));
    if (out_.size() > begin && done.part != Part::kRepeat) done.begin = begin;
  }
  return in_row(done.before, done.last);
}

// As in Python, a backslash takes the next character with it, even the end of a line.
Result<bool> Translator::skip_space(const Flags& flags) {
  if (!flags.verbose || !reader_.sees_one_of(" \t\n\r\v\f#")) return false;
  if (reader_.next() != '#') return true;
  while (!reader_.done()) {
    const char32_t c = reader_.next();
    if (c == '\n') break;
    if (c != '\\') continue;
    if (reader_.done()) return syntax_here("a backslash at the end");
    reader_.next();
  }
  return true;
}

Result<void> Translator::part(Sequence& done, const Flags& flags, int depth) {
  const std::size_t start = reader_.position();
  const char32_t c = reader_.next();
  switch (c) {
    case '\\':
      return escape(done, flags);
    case '[':
      CAIRN_TRY(append_set(reader_, out_, flags.fold));
      done.add(Part::kPlain, {1, 1});
      return {};
    case '(':
      return group(done, flags, depth);
    case '.':
      out_ += '.';
      done.add(Part::kPlain, {1, 1});
      return {};
    case '^':
    case '$':
      out_ += static_cast<char>(c);
      done.add(Part::kAnchor, {});
      return {};
    case '*':
      return repeat(done, {0, {}}, start);
    case '+':
      return repeat(done, {1, {}}, start);
    case '?':
      return repeat(done, {0, 1}, start);
    case '{': {
      CAIRN_TRY_ASSIGN(const auto times, braces(start));
      if (times) return repeat(done, *times, start);
      break;
    }
    default:
      break;
  }
  append_literal(out_, c, flags.fold);
  done.add(Part::kPlain, {1, 1});
  return {};
}

Result<void> Translator::escape(Sequence& done, const Flags& flags) {
  CAIRN_TRY_ASSIGN(const RegexEscape escape, reader_.escape(RegexPlace::kOutside));
  switch (escape.kind) {
    case RegexEscape::Kind::kReference:
      return reference(done, escape.code, flags);
    case RegexEscape::Kind::kAnchor:
      // In Python \Z is the very end, and \B is not found in nothing.
      out_ += escape.code == 'Z'   ? "\\z"
              : escape.code == 'B' ? "(?:\\B(?!\\A\\z))"
              : escape.code == 'A' ? "\\A"
                                   : "\\b";
      done.add(Part::kAnchor, {});
      return {};
    case RegexEscape::Kind::kCategory:
      append_category(out_, escape.code);
      break;
    case RegexEscape::Kind::kLiteral:
      append_literal(out_, escape.code, flags.fold);
      break;
  }
  done.add(Part::kPlain, {1, 1});
  return {};
}

// {m}, {m,}, {,n} and {m,n}. Anything else is a brace that stands for itself.
Result<std::optional<Repeat>> Translator::braces(std::size_t start) {
  const std::size_t inside = reader_.position();
  const auto number = [&]() -> std::optional<std::uint64_t> {
    if (!reader_.sees_digit()) return std::nullopt;
    std::uint64_t value = 0;
    while (reader_.sees_digit()) value = std::min(value * 10 + (reader_.next() - '0'), kEndless);
    return value;
  };
  const auto least = number();
  const bool comma = reader_.take(',');
  const auto most = comma ? number() : least;
  if (!reader_.take('}') || (!comma && !least)) {
    reader_.seek(inside);
    return std::optional<Repeat>();
  }
  if (std::max(least.value_or(0), most.value_or(0)) > kMaxRepeat) {
    return reader_.unsupported("a repeat of more than 65535 times", start);
  }
  if (most && *most < least.value_or(0)) {
    return reader_.syntax("min repeat greater than max repeat", start);
  }
  return std::optional(Repeat{least.value_or(0), most});
}

Result<void> Translator::repeat(Sequence& done, const Repeat& repeat, std::size_t start) {
  if (done.part == Part::kNone || done.part == Part::kAnchor) {
    return reader_.syntax("nothing to repeat", start);
  }
  if (done.part == Part::kRepeat) return reader_.syntax("multiple repeat", start);
  const bool lazy = reader_.take('?');
  const bool possessive = !lazy && reader_.take('+');
  if (possessive && out_[done.begin] == '(') {
    // Python gives back nothing of any round, PCRE2 nothing after the last.
    out_.insert(done.begin, "(?>");
    out_ += ')';
  }
  out_ += fmt::format("{{{},", repeat.least);
  if (repeat.most) out_ += std::to_string(*repeat.most);
  out_ += lazy ? "}?" : possessive ? "}+" : "}";
  done.last = repeated(done.last, repeat);
  done.part = Part::kRepeat;
  return {};
}

Result<void> Translator::group(Sequence& done, const Flags& flags, int depth) {
  if (!reader_.take('?')) return capture(done, flags, depth);
  const std::size_t start = reader_.position() - 2;
  if (reader_.take('P')) return python_group(done, flags, depth);
  if (reader_.take('#')) return skip_comment();
  if (reader_.take('(')) return condition(done, flags, depth);
  if (reader_.sees_one_of("=!<")) return look(done, flags, depth);
  if (reader_.sees_one_of(":>")) {
    out_ += "(?";
    out_ += static_cast<char>(reader_.next());
    return enclosed(done, flags, depth);
  }
  if (!reader_.sees_one_of("aiLmsux-")) return syntax_here("unknown extension");
  CAIRN_TRY_ASSIGN(const FlagLetters letters, flag_letters());
  if (letters.for_all) {
    return reader_.syntax("global flags not at the start of the expression", start);
  }
  out_ += "(?" + FlagLetters::for_pcre(letters.on);
  if (const auto off = FlagLetters::for_pcre(letters.off); !off.empty()) out_ += "-" + off;
  out_ += ':';
  return enclosed(done, letters.apply(flags), depth);
}

// The rest of a group of any kind, from after its opening to its end.
Result<void> Translator::enclosed(Sequence& done, const Flags& flags, int depth) {
  CAIRN_TRY_ASSIGN(const Width width, alternatives(flags, depth + 1));
  if (!reader_.take(')')) return syntax_here("missing ), unterminated subpattern");
  out_ += ')';
  done.add(Part::kPlain, width);
  return {};
}

Result<void> Translator::capture(Sequence& done, const Flags& flags, int depth) {
  const std::size_t number = groups_.size();
  groups_.emplace_back();
  out_ += '(';
  CAIRN_TRY(enclosed(done, flags, depth));
  groups_[number] = done.last;
  return {};
}

Result<void> Translator::python_group(Sequence& done, const Flags& flags, int depth) {
  if (reader_.take('<')) {
    CAIRN_TRY_ASSIGN(std::string called, name('>'));
    if (!names_.emplace(std::move(called), groups_.size()).second) {
      return syntax_here("redefinition of a group name");
    }
    return capture(done, flags, depth);
  }
  if (!reader_.take('=')) return syntax_here("unknown extension ?P");
  CAIRN_TRY_ASSIGN(const std::string called, name(')'));
  const auto found = names_.find(called);
  if (found == names_.end()) return syntax_here("unknown group name");
  return reference(done, found->second, flags);
}

Result<void> Translator::look(Sequence& done, const Flags& flags, int depth) {
  const std::size_t start = reader_.position();
  const bool behind = reader_.take('<');
  if (!reader_.sees_one_of("=!")) return syntax_here("unknown extension ?<");
  out_ += behind ? "(?<" : "(?";
  out_ += static_cast<char>(reader_.next());
  const auto outer = look_behind_;
  if (behind && !outer) look_behind_ = groups_.size();
  CAIRN_TRY(enclosed(done, flags, depth));
  look_behind_ = outer;
  if (behind && done.last.least != done.last.most) {
    return reader_.syntax("look-behind requires a fixed-width pattern", start);
  }
  done.last = {};
  return {};
}

Result<void> Translator::condition(Sequence& done, const Flags& flags, int depth) {
  const std::size_t start = reader_.position();
  std::size_t number = 0;
  if (reader_.sees_digit()) {
    while (reader_.sees_digit()) {
      number = std::min<std::size_t>(number * 10 + (reader_.next() - '0'), kEndless);
    }
    if (number == 0) return reader_.syntax("bad group number", start);
    if (!reader_.take(')')) return syntax_here("bad character in group name");
    conditions_.emplace(number, start);
  } else {
    CAIRN_TRY_ASSIGN(const std::string called, name(')'));
    const auto found = names_.find(called);
    if (found == names_.end()) return reader_.syntax("unknown group name", start);
    number = found->second;
  }
  CAIRN_TRY(check_look_behind(number));
  out_ += fmt::format("(?({})", number);
  CAIRN_TRY_ASSIGN(Width width, sequence(flags, depth + 1));
  Width otherwise;
  if (reader_.take('|')) {
    out_ += '|';
    CAIRN_TRY_ASSIGN(otherwise, sequence(flags, depth + 1));
    if (reader_.sees('|')) return syntax_here("conditional with more than two branches");
    width = either(width, otherwise);
  } else {
    width.least = 0;
  }
  if (!reader_.take(')')) return syntax_here("missing ), unterminated subpattern");
  out_ += ')';
  done.add(Part::kPlain, width);
  return {};
}

// As in Python, a backslash takes the next character with it, even the parenthesis.
Result<void> Translator::skip_comment() {
  while (!reader_.done()) {
    const char32_t c = reader_.next();
    if (c == ')') return {};
    if (c == '\\' && !reader_.done()) reader_.next();
  }
  return syntax_here("missing ), unterminated comment");
}

Result<std::string> Translator::letters_until(std::string_view ends, std::size_t start) {
  std::string letters;
  while (!reader_.done() && !reader_.sees_one_of(ends)) {
    if (!reader_.sees_one_of("aiLmsux")) return syntax_here("unknown flag");
    letters += static_cast<char>(reader_.next());
  }
  if (reader_.done()) return syntax_here("missing -, : or )");
  if (letters.find('L') != std::string::npos) {
    return reader_.syntax("flag L, which is for bytes,", start);
  }
  if (letters.find('a') != std::string::npos) return reader_.unsupported("flag a", start);
  return letters;
}

Result<FlagLetters> Translator::flag_letters() {
  const std::size_t start = reader_.position();
  FlagLetters letters;
  CAIRN_TRY_ASSIGN(letters.on, letters_until("-:)", start));
  letters.for_all = reader_.take(')');
  if (letters.for_all || reader_.take(':')) return letters;
  reader_.next();
  CAIRN_TRY_ASSIGN(letters.off, letters_until(":", start));
  if (letters.off.empty()) return syntax_here("missing flag");
  if (letters.off.find('u') != std::string::npos) return syntax_here("flag u turned off");
  if (letters.off.find_first_of(letters.on) != std::string::npos) {
    return syntax_here("flag turned on and off");
  }
  reader_.next();
  return letters;
}

Result<std::string> Translator::name(char32_t end) {
  const std::size_t start = reader_.position();
  std::string name;
  while (!reader_.done() && !reader_.sees(end)) {
    const char32_t c = reader_.next();
    if (c >= 0x80) return reader_.unsupported("a group name that is not ASCII", start);
    const bool digit = c >= '0' && c <= '9';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (!digit || name.empty())) {
      return reader_.syntax("bad character in group name", start);
    }
    name += static_cast<char>(c);
  }
  if (!reader_.take(end) || name.empty()) return reader_.syntax("missing group name", start);
  return name;
}

Result<void> Translator::reference(Sequence& done, std::size_t number, const Flags& flags) {
  if (number >= groups_.size()) return syntax_here("invalid group reference");
  if (!is_closed(number)) return syntax_here("cannot refer to an open group");
  CAIRN_TRY(check_look_behind(number));
  if (flags.fold) {
    return reader_.unsupported("a reference to a group without regard to case", reader_.position());
  }
  out_ += fmt::format("\\g{{{}}}", number);
  done.add(Part::kPlain, *groups_[number]);
  return {};
}

Result<void> Translator::check_look_behind(std::size_t number) const {
  if (!look_behind_ || (is_closed(number) && number < *look_behind_)) return {};
  return syntax_here("a look-behind cannot refer to a group that is open or in itself");
}

}  // namespace

Result<std::string> pcre_of_python(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return Error(Code::kInvalidArgument, "regex/too-long",
                 fmt::format("the expression has {} bytes; at most {} are possible", pattern.size(),
                             kMaxPatternBytes));
  }
  CAIRN_TRY_ASSIGN(RegexReader reader, RegexReader::over(pattern));
  return Translator(std::move(reader)).run();
}

}  // namespace cairn::inline sharding
