// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/pickle.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/utf8.h"

namespace cairn {

namespace {

/// Longest integer that is read, in bytes. Decimal digits take time with the square of it.
constexpr std::size_t kMaxIntegerBytes = 255;

Error damaged(std::string_view what) {
  return Error(Code::kCorrupt, "pickle/damaged", fmt::format("not a pickle: {}", what));
}

Error unsupported(std::string what) {
  return Error(Code::kUnimplemented, "pickle/unsupported", std::move(what));
}

/// Digits of the two's complement number that stands there in little-endian order.
std::string decimal_of(std::string_view bytes) {
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
  std::vector<std::uint32_t> limbs((bytes.size() + 3) / 4, negative ? ~std::uint32_t{0} : 0);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned shift = 8 * (i % 4);
    limbs[i / 4] &= ~(std::uint32_t{0xff} << shift);
    limbs[i / 4] |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << shift;
  }
  if (negative) {
    std::uint64_t carry = 1;
    for (std::uint32_t& limb : limbs) {
      carry += static_cast<std::uint32_t>(~limb);
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  std::string digits;  // the last one first
  while (std::ranges::any_of(limbs, [](std::uint32_t limb) { return limb != 0; })) {
    std::uint64_t rest = 0;
    for (auto limb = limbs.rbegin(); limb != limbs.rend(); ++limb) {
      rest = (rest << 32) | *limb;
      *limb = static_cast<std::uint32_t>(rest / 1'000'000'000);
      rest %= 1'000'000'000;
    }
    for (int n = 0; n < 9; ++n, rest /= 10) digits += static_cast<char>('0' + rest % 10);
  }
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  if (digits.empty()) return "0";
  if (negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

bool is_plain_key(const Pickle::Item& item) {
  return std::holds_alternative<Pickle::None>(item) || std::holds_alternative<bool>(item) ||
         std::holds_alternative<Pickle::Integer>(item) || std::holds_alternative<double>(item) ||
         std::holds_alternative<std::string>(item) || std::holds_alternative<Pickle::Bytes>(item);
}

}  // namespace

/// Python's stack machine, with items in the place of objects.
class PickleMachine {
 public:
  using Number = Pickle::Number;
  using Numbers = Pickle::Numbers;

  explicit PickleMachine(std::string_view bytes) : rest_(bytes) {
    // Constants that every pickle is full of have one item each.
    made_.items_ = {Pickle::None{}, Pickle::Item(false), Pickle::Item(true)};
    for (int value = 0; value < kSmall; ++value)
      made_.items_.emplace_back(Pickle::Integer{std::to_string(value)});
  }

  Result<Pickle> run() {
    for (;;) {
      CAIRN_TRY_ASSIGN(const std::string_view code, take(1));
      if (code[0] == '.') {
        CAIRN_TRY_ASSIGN(made_.root_, pop());
        return std::move(made_);
      }
      CAIRN_TRY(step(static_cast<unsigned char>(code[0])));
    }
  }

 private:
  static constexpr int kSmall = 256;
  static constexpr Number kNone = 0;
  static constexpr Number kFalse = 1;
  static constexpr Number kTrue = 2;
  static constexpr Number kFirstSmall = 3;

  Result<void> step(unsigned char code) {
    switch (code) {
      case 0x80:  // PROTO
        return skip(1);
      case 0x95:  // FRAME
        return skip(8);
      case 'N':
        return push(kNone);
      case 0x88:  // NEWTRUE
        return push(kTrue);
      case 0x89:  // NEWFALSE
        return push(kFalse);
      case 'J':  // BININT
        return integer(4, true);
      case 'K':  // BININT1
        return integer(1, false);
      case 'M':  // BININT2
        return integer(2, false);
      case 0x8a:  // LONG1
        return long_integer(1);
      case 0x8b:  // LONG4
        return long_integer(4);
      case 'G':  // BINFLOAT
        return number();
      case 0x8c:  // SHORT_BINUNICODE
        return text(1);
      case 'X':  // BINUNICODE
        return text(4);
      case 0x8d:  // BINUNICODE8
        return text(8);
      case 'C':  // SHORT_BINBYTES
        return bytes(1);
      case 'B':  // BINBYTES
        return bytes(4);
      case 0x8e:  // BINBYTES8
        return bytes(8);
      default:
        return step_container(code);
    }
  }

  Result<void> step_container(unsigned char code) {
    switch (code) {
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return {};
      case ')':
        return push(Pickle::Tuple{});
      case ']':
        return push(Pickle::List{});
      case '}':
        return push(Pickle::Dict{});
      case 0x85:  // TUPLE1, TUPLE2, TUPLE3
      case 0x86:
      case 0x87:
        return tuple_of(code - 0x84u);
      case 't': {
        CAIRN_TRY_ASSIGN(auto items, above_mark());
        return push(Pickle::Tuple{std::move(items)});
      }
      case 'a': {  // APPEND
        CAIRN_TRY_ASSIGN(const Number item, pop());
        return append({item});
      }
      case 'e': {  // APPENDS
        CAIRN_TRY_ASSIGN(auto items, above_mark());
        return append(items);
      }
      case 's': {  // SETITEM
        CAIRN_TRY_ASSIGN(const Number value, pop());
        CAIRN_TRY_ASSIGN(const Number key, pop());
        return set_items({key, value});
      }
      case 'u': {  // SETITEMS
        CAIRN_TRY_ASSIGN(auto items, above_mark());
        return set_items(items);
      }
      default:
        return step_object(code);
    }
  }

  Result<void> step_object(unsigned char code) {
    switch (code) {
      case 0x94:  // MEMOIZE
        return keep(memo_.size());
      case 'q':  // BINPUT, LONG_BINPUT
      case 'r': {
        CAIRN_TRY_ASSIGN(const std::uint64_t where, little(code == 'q' ? 1 : 4));
        return keep(where);
      }
      case 'h':  // BINGET, LONG_BINGET
      case 'j': {
        CAIRN_TRY_ASSIGN(const std::uint64_t where, little(code == 'h' ? 1 : 4));
        const auto found = memo_.find(where);
        if (found == memo_.end()) return damaged("it refers to nothing");
        return push(found->second);
      }
      case 'c':  // GLOBAL
        return old_name();
      case 0x93:  // STACK_GLOBAL
        return stack_name();
      case 0x81:  // NEWOBJ, REDUCE
      case 'R': {
        CAIRN_TRY_ASSIGN(const Number arguments, pop());
        CAIRN_TRY_ASSIGN(const Number what, pop());
        return push(Pickle::Call{what, arguments, kNone});
      }
      case 'b': {  // BUILD
        CAIRN_TRY_ASSIGN(const Number state, pop());
        CAIRN_TRY_ASSIGN(auto* const call, top<Pickle::Call>());
        call->state = state;
        return {};
      }
      default:
        return unsupported(fmt::format("the operation 0x{:02x} of the pickle is not read", code));
    }
  }

  // Bytes. --------------------------------------------------------------------------------------

  Result<std::string_view> take(std::uint64_t count) {
    if (count > rest_.size()) return damaged("it has no end");
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  Result<void> skip(std::uint64_t count) {
    CAIRN_TRY(take(count));
    return {};
  }

  Result<std::uint64_t> little(std::size_t width) {
    CAIRN_TRY_ASSIGN(const std::string_view taken, take(width));
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;)
      value = (value << 8) | static_cast<unsigned char>(taken[i]);
    return value;
  }

  Result<void> integer(std::size_t width, bool is_signed) {
    CAIRN_TRY_ASSIGN(const std::uint64_t value, little(width));
    const std::int64_t number =
        is_signed ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
    if (number >= 0 && number < kSmall) return push(kFirstSmall + static_cast<Number>(number));
    return push(Pickle::Integer{std::to_string(number)});
  }

  Result<void> long_integer(std::size_t width) {
    CAIRN_TRY_ASSIGN(const std::uint64_t size, little(width));
    if (size > kMaxIntegerBytes)
      return unsupported(
          fmt::format("it holds an integer of more than {} bytes", kMaxIntegerBytes));
    CAIRN_TRY_ASSIGN(const std::string_view taken, take(size));
    return push(Pickle::Integer{decimal_of(taken)});
  }

  Result<void> number() {
    CAIRN_TRY_ASSIGN(const std::string_view taken, take(8));
    std::uint64_t bits = 0;
    for (const char byte : taken) bits = (bits << 8) | static_cast<unsigned char>(byte);
    return push(Pickle::Item(std::bit_cast<double>(bits)));
  }

  Result<std::string_view> counted(std::size_t width) {
    CAIRN_TRY_ASSIGN(const std::uint64_t size, little(width));
    return take(size);
  }

  Result<void> text(std::size_t width) {
    CAIRN_TRY_ASSIGN(const std::string_view taken, counted(width));
    if (!is_utf8(taken)) return unsupported("it holds a text that UTF-8 cannot hold");
    return push(Pickle::Item(std::string(taken)));
  }

  Result<void> bytes(std::size_t width) {
    CAIRN_TRY_ASSIGN(const std::string_view taken, counted(width));
    return push(Pickle::Bytes{std::string(taken)});
  }

  Result<std::string_view> line() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return damaged("it has no end");
    CAIRN_TRY_ASSIGN(std::string_view taken, take(end + 1));
    taken.remove_suffix(1);
    return taken;
  }

  // The stack. ----------------------------------------------------------------------------------

  Result<void> push(Number number) {
    stack_.push_back(number);
    return {};
  }

  Result<void> push(Pickle::Item item) {
    if (made_.items_.size() >= kMaxPickleItems) {
      return Error(Code::kResourceExhausted, "pickle/too-large",
                   fmt::format("a pickle of more than {} items", kMaxPickleItems));
    }
    made_.items_.push_back(std::move(item));
    return push(static_cast<Number>(made_.items_.size() - 1));
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Result<Number> pop() {
    if (stack_.size() <= floor()) return damaged("its stack is empty");
    const Number number = stack_.back();
    stack_.pop_back();
    return number;
  }

  template <typename T>
  Result<T*> top() {
    T* const item =
        stack_.size() <= floor() ? nullptr : std::get_if<T>(&made_.items_[stack_.back()]);
    if (item == nullptr) return damaged("there is nothing to fill");
    return item;
  }

  Result<Numbers> above_mark() {
    if (marks_.empty()) return damaged("there is no mark");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    Numbers items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  Result<void> tuple_of(std::size_t count) {
    Numbers items(count);
    for (std::size_t i = count; i-- > 0;) {
      CAIRN_TRY_ASSIGN(items[i], pop());
    }
    return push(Pickle::Tuple{std::move(items)});
  }

  Result<void> append(const Numbers& items) {
    CAIRN_TRY_ASSIGN(auto* const list, top<Pickle::List>());
    list->items.insert(list->items.end(), items.begin(), items.end());
    return {};
  }

  Result<void> set_items(const Numbers& items) {
    CAIRN_TRY_ASSIGN(auto* const dict, top<Pickle::Dict>());
    if (items.size() % 2 != 0) return damaged("a key has no value");
    for (std::size_t i = 0; i < items.size(); i += 2) {
      if (!is_plain_key(made_.at(items[i])))
        return unsupported("a dict has keys that are no plain values");
    }
    dict->items.insert(dict->items.end(), items.begin(), items.end());
    return {};
  }

  Result<void> keep(std::uint64_t where) {
    if (stack_.size() <= floor()) return damaged("its stack is empty");
    memo_[where] = stack_.back();
    return {};
  }

  // Names. --------------------------------------------------------------------------------------

  Result<void> push_name(std::string_view module, std::string_view name) {
    if (!is_utf8(module) || !is_utf8(name)) return damaged("a name that is no text");
    return push(Pickle::Name{fmt::format("{}:{}", module, name)});
  }

  Result<void> old_name() {
    CAIRN_TRY_ASSIGN(const std::string_view module, line());
    CAIRN_TRY_ASSIGN(const std::string_view name, line());
    return push_name(module, name);
  }

  Result<void> stack_name() {
    CAIRN_TRY_ASSIGN(const Number name, pop());
    CAIRN_TRY_ASSIGN(const Number module, pop());
    const auto* name_text = std::get_if<std::string>(&made_.at(name));
    const auto* module_text = std::get_if<std::string>(&made_.at(module));
    if (name_text == nullptr || module_text == nullptr) return damaged("a name that is no text");
    return push_name(*module_text, *name_text);
  }

  std::string_view rest_;
  Pickle made_;
  Numbers stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack below them
  std::unordered_map<std::uint64_t, Number> memo_;
};

Result<Pickle> Pickle::parse(std::string_view bytes) {
  if (bytes.size() > kMaxPickleBytes) {
    return Error(
        Code::kResourceExhausted, "pickle/too-large",
        fmt::format("a pickle of {} bytes; at most {} are read", bytes.size(), kMaxPickleBytes));
  }
  return PickleMachine(bytes).run();
}

template <typename T>
void PickleWriter::put_little(T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) put(static_cast<char>(value >> (8 * i) & 0xff));
}

void PickleWriter::integer(std::int64_t value) {
  const bool small = value >= std::numeric_limits<std::int32_t>::min() &&
                     value <= std::numeric_limits<std::int32_t>::max();
  if (small) {
    put('J');
    put_little(static_cast<std::uint32_t>(value));
  } else {
    out_ += "\x8a\x08";
    put_little(static_cast<std::uint64_t>(value));
  }
}

void PickleWriter::number(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  put('G');
  for (int shift = 56; shift >= 0; shift -= 8) put(static_cast<char>(bits >> shift & 0xff));
}

void PickleWriter::text(std::string_view value) {
  put('X');
  put_little(static_cast<std::uint32_t>(value.size()));
  out_ += value;
}

void PickleWriter::bytes(std::string_view value) {
  put('B');
  put_little(static_cast<std::uint32_t>(value.size()));
  out_ += value;
}

void PickleWriter::begin_call(std::string_view module, std::string_view name) {
  text(module);
  text(name);
  out_ += "\x93(";
}

std::string PickleWriter::finish() && {
  put('.');
  return std::move(out_);
}

}  // namespace cairn
