// SPDX-License-Identifier: Apache-2.0
// Reads Python's pickles without executing them: classes and functions stay names, and nothing is
// called. Also writes plain ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cairn/base/result.h"

namespace cairn {

/// Longest pickle that is read.
constexpr std::size_t kMaxPickleBytes = std::size_t{64} << 20;
/// More items are refused.
constexpr std::size_t kMaxPickleItems = std::size_t{1} << 22;

/// What a pickle describes, as items that refer to each other by number. Items may be shared and
/// may contain themselves: walk them with a limit. Threading: compatible.
class Pickle {
 public:
  using Number = std::uint32_t;
  using Numbers = std::vector<Number>;

  struct None {};
  struct Integer {
    std::string digits;  ///< decimal, "-12"
  };
  struct Bytes {
    std::string data;
  };
  struct Tuple {
    Numbers items;
  };
  struct List {
    Numbers items;
  };
  struct Dict {
    Numbers items;  ///< key, value, key, value
  };
  /// A class or function, by name only: it is never imported.
  struct Name {
    std::string text;  ///< "module:QualifiedName"
  };
  /// A call that the pickle asks for: it is never made.
  struct Call {
    Number what = 0;
    Number arguments = 0;
    Number state = 0;  ///< the None at 0 if there is none
  };
  /// Text is UTF-8.
  using Item =
      std::variant<None, bool, Integer, double, std::string, Bytes, Tuple, List, Dict, Name, Call>;

  /// Pure; hostile bytes; protocols 2 to 5. Time and memory are proportional to the bytes.
  /// `corrupt` (pickle/damaged), `unimplemented` (pickle/unsupported: only execution could give it
  /// a meaning), `resource_exhausted` (pickle/too-large).
  static Result<Pickle> parse(std::string_view bytes);

  const Item& root() const { return items_[root_]; }
  const Item& at(Number number) const { return items_[number]; }

 private:
  friend class PickleMachine;
  std::vector<Item> items_;
  Number root_ = 0;
};

/// Writes one pickle of protocol 4, in the order in which Python executes it. Threading:
/// compatible.
class PickleWriter {
 public:
  void none() { put('N'); }
  void boolean(bool value) { put(value ? '\x88' : '\x89'); }
  void integer(std::int64_t value);
  void number(double value);
  void text(std::string_view value);  ///< REQUIRES: UTF-8, less than 4 GiB
  void bytes(std::string_view value);

  /// Items between begin_x() and end_x() belong to the container; in a dict, keys and values
  /// alternate.
  void begin_list() { out_ += "]("; }
  void end_list() { put('e'); }
  void begin_dict() { out_ += "}("; }
  void end_dict() { put('u'); }
  void begin_tuple() { put('('); }
  void end_tuple() { put('t'); }
  /// Items between them are the arguments.
  void begin_call(std::string_view module, std::string_view name);
  void end_call() { out_ += "tR"; }

  /// The whole pickle. The writer cannot be used afterwards.
  std::string finish() &&;

 private:
  void put(char byte) { out_ += byte; }
  template <typename T>
  void put_little(T value);
  std::string out_ = "\x80\x04";
};

}  // namespace cairn
