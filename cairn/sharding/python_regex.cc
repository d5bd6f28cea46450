// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/python_regex.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cairn/sharding/regex_reader.h"
#include "cairn/sharding/regex_set.h"
#include "cairn/sharding/regex_tokens.h"

namespace cairn {
namespace {

constexpr int kMaxDepth = 100;
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

Width repeated(Width width, const RegexRepeat& repeat) {
  const auto times = [](std::uint64_t size, std::uint64_t count) {
    return size != 0 && count >= kEndless / size ? kEndless : size * count;
  };
  return {times(width.least, repeat.least), times(width.most, repeat.most.value_or(kEndless))};
}

// What the last part of a sequence was decides whether it can be repeated.
enum class Part { kNone, kPlain, kAnchor, kRepeat };

struct Sequence {
  Width before;  // all but the last part
  Width last;
  Part part = Part::kNone;
  std::size_t begin = 0;   // of the last part, in the output
  std::size_t groups = 0;  // how many there were before the last part

  void add(Part kind, Width width) {
    before = in_row(before, last);
    last = width;
    part = kind;
  }
};

class Translator {
 public:
  explicit Translator(RegexReader reader) : reader_(std::move(reader)) {}
  Result<std::string> run();

 private:
  Result<RegexFlags> flags_for_all();
  Result<Width> alternatives(const RegexFlags& flags, int depth);
  Result<Width> sequence(const RegexFlags& flags, int depth);
  Result<void> part(Sequence& done, const RegexFlags& flags, int depth);
  void skip_leading_any();
  Result<bool> skip_space(const RegexFlags& flags);
  Result<void> escape(Sequence& done, const RegexFlags& flags);
  Result<void> repeat(Sequence& done, const RegexRepeat& repeat, std::size_t start);
  void drop_last(const Sequence& done);

  Result<void> group(Sequence& done, const RegexFlags& flags, int depth);
  Result<void> python_group(Sequence& done, const RegexFlags& flags, int depth);
  Result<void> capture(Sequence& done, const RegexFlags& flags, int depth);
  Result<void> enclosed(Sequence& done, const RegexFlags& flags, int depth);
  Result<void> look(Sequence& done, const RegexFlags& flags, int depth);
  Result<void> condition(Sequence& done, const RegexFlags& flags, int depth);

  Result<void> reference(Sequence& done, std::size_t number, const RegexFlags& flags);
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
  bool looks_around_ = false;
};

Result<std::string> Translator::run() {
  CAIRN_TRY_ASSIGN(const RegexFlags flags, flags_for_all());
  CAIRN_TRY(alternatives(flags, 0));
  if (!reader_.done()) return syntax_here("unbalanced parenthesis");
  for (const auto& [number, position] : conditions_) {
    if (number >= groups_.size()) return reader_.syntax("invalid group reference", position);
  }
  // Where it looks for a first character, PCRE2 10.42 does not find (?=a)a*a in "a".
  return looks_around_ ? "(*NO_START_OPT)" + out_ : std::move(out_);
}

Result<RegexFlags> Translator::flags_for_all() {
  RegexFlags flags;
  while (true) {
    CAIRN_TRY_ASSIGN(const bool skipped, skip_space(flags));
    if (skipped) continue;
    const std::size_t start = reader_.position();
    if (!reader_.take('(') || !reader_.take('?')) {
      reader_.seek(start);
      return flags;
    }
    if (reader_.take('#')) {
      CAIRN_TRY(skip_comment(reader_));
      continue;
    }
    if (!reader_.sees_one_of("aiLmsux")) {
      reader_.seek(start);
      return flags;
    }
    CAIRN_TRY_ASSIGN(const RegexFlagLetters letters, read_flags(reader_));
    if (!letters.for_all) {
      reader_.seek(start);
      return flags;
    }
    flags = letters.apply(flags);
    if (const std::string on = letters.pcre_on(); !on.empty()) {
      out_ += fmt::format("(?{})", on);
    }
  }
}

Result<Width> Translator::alternatives(const RegexFlags& flags, int depth) {
  CAIRN_TRY_ASSIGN(Width width, sequence(flags, depth));
  while (reader_.take('|')) {
    out_ += '|';
    CAIRN_TRY_ASSIGN(const Width other, sequence(flags, depth));
    width = either(width, other);
  }
  return width;
}

Result<Width> Translator::sequence(const RegexFlags& flags, int depth) {
  if (depth > kMaxDepth) return reader_.unsupported("such deep nesting", reader_.position());
  Sequence done;
  if (depth == 0) skip_leading_any();
  while (!reader_.done() && !reader_.sees_one_of("|)")) {
    CAIRN_TRY_ASSIGN(const bool skipped, skip_space(flags));
    if (skipped) continue;
    const std::size_t begin = out_.size();
    const std::size_t groups = groups_.size();
    CAIRN_TRY(part(done, flags, depth));
    if (out_.size() == begin || done.part == Part::kRepeat) continue;
    done.begin = begin;
    done.groups = groups;
  }
  return in_row(done.before, done.last);
}

// Whether something is found does not depend on a `.*` in front, but the time to find out does.
void Translator::skip_leading_any() {
  const std::size_t start = reader_.position();
  if (!reader_.take('.') || !reader_.take('*') || reader_.sees_one_of("*+?{")) reader_.seek(start);
}

// As in Python, a backslash takes the next character with it, even the end of a line.
Result<bool> Translator::skip_space(const RegexFlags& flags) {
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

Result<void> Translator::part(Sequence& done, const RegexFlags& flags, int depth) {
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
      CAIRN_TRY_ASSIGN(const auto times, read_braces(reader_));
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

Result<void> Translator::escape(Sequence& done, const RegexFlags& flags) {
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

Result<void> Translator::repeat(Sequence& done, const RegexRepeat& repeat, std::size_t start) {
  if (done.part == Part::kNone || done.part == Part::kAnchor) {
    return reader_.syntax("nothing to repeat", start);
  }
  if (done.part == Part::kRepeat) return reader_.syntax("multiple repeat", start);
  const bool lazy = reader_.take('?');
  const bool possessive = !lazy && reader_.take('+');
  if (repeat.most == 0) {
    drop_last(done);
  } else {
    if (possessive && out_[done.begin] == '(') {
      // Python gives back nothing of any round, PCRE2 nothing after the last.
      out_.insert(done.begin, "(?>");
      out_ += ')';
    }
    const std::string most = repeat.most ? std::to_string(*repeat.most) : "";
    out_ += fmt::format("{{{},{}}}{}", repeat.least, most, lazy ? "?" : possessive ? "+" : "");
  }
  done.last = repeated(done.last, repeat);
  done.part = Part::kRepeat;
  return {};
}

// Something that is there no times. PCRE2 10.42 still looks into it, and does not find (?:a|\A){0}b
// in "ab". Its groups keep their numbers.
void Translator::drop_last(const Sequence& done) {
  out_.resize(done.begin);
  out_ += "(?:(?!)";
  for (std::size_t i = done.groups; i < groups_.size(); ++i) out_ += "()";
  out_ += "|)";
}

Result<void> Translator::group(Sequence& done, const RegexFlags& flags, int depth) {
  if (!reader_.take('?')) return capture(done, flags, depth);
  const std::size_t start = reader_.position() - 2;
  if (reader_.take('P')) return python_group(done, flags, depth);
  if (reader_.take('#')) return skip_comment(reader_);
  if (reader_.take('(')) return condition(done, flags, depth);
  if (reader_.sees_one_of("=!<")) return look(done, flags, depth);
  if (reader_.sees_one_of(":>")) {
    out_ += "(?";
    out_ += static_cast<char>(reader_.next());
    return enclosed(done, flags, depth);
  }
  if (!reader_.sees_one_of("aiLmsux-")) return syntax_here("unknown extension");
  CAIRN_TRY_ASSIGN(const RegexFlagLetters letters, read_flags(reader_));
  if (letters.for_all) {
    return reader_.syntax("global flags not at the start of the expression", start);
  }
  out_ += "(?" + letters.pcre_on();
  if (const auto off = letters.pcre_off(); !off.empty()) out_ += "-" + off;
  out_ += ':';
  return enclosed(done, letters.apply(flags), depth);
}

// The rest of a group of any kind, from after its opening to its end.
Result<void> Translator::enclosed(Sequence& done, const RegexFlags& flags, int depth) {
  CAIRN_TRY_ASSIGN(const Width width, alternatives(flags, depth + 1));
  if (!reader_.take(')')) return syntax_here("missing ), unterminated subpattern");
  out_ += ')';
  done.add(Part::kPlain, width);
  return {};
}

Result<void> Translator::capture(Sequence& done, const RegexFlags& flags, int depth) {
  const std::size_t number = groups_.size();
  groups_.emplace_back();
  out_ += '(';
  CAIRN_TRY(enclosed(done, flags, depth));
  groups_[number] = done.last;
  return {};
}

Result<void> Translator::python_group(Sequence& done, const RegexFlags& flags, int depth) {
  if (reader_.take('<')) {
    CAIRN_TRY_ASSIGN(std::string called, read_group_name(reader_, '>'));
    if (!names_.emplace(std::move(called), groups_.size()).second) {
      return syntax_here("redefinition of a group name");
    }
    return capture(done, flags, depth);
  }
  if (!reader_.take('=')) return syntax_here("unknown extension ?P");
  CAIRN_TRY_ASSIGN(const std::string called, read_group_name(reader_, ')'));
  const auto found = names_.find(called);
  if (found == names_.end()) return syntax_here("unknown group name");
  return reference(done, found->second, flags);
}

Result<void> Translator::look(Sequence& done, const RegexFlags& flags, int depth) {
  const std::size_t start = reader_.position();
  looks_around_ = true;
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

Result<void> Translator::condition(Sequence& done, const RegexFlags& flags, int depth) {
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
    CAIRN_TRY_ASSIGN(const std::string called, read_group_name(reader_, ')'));
    const auto found = names_.find(called);
    if (found == names_.end()) return reader_.syntax("unknown group name", start);
    number = found->second;
  }
  CAIRN_TRY(check_look_behind(number));
  if (number < groups_.size() && !is_closed(number)) {
    return reader_.unsupported("a condition on a group that is still open", start);
  }
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

Result<void> Translator::reference(Sequence& done, std::size_t number, const RegexFlags& flags) {
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

}  // namespace cairn
