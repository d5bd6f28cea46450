// SPDX-License-Identifier: Apache-2.0
// Output of the command: text or JSON on standard output, progress and errors on standard error.
// Colours only on a terminal and never with NO_COLOR. Text from outside never reaches a terminal
// unescaped: all of it passes printable(), and JSON is ASCII.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/runtime/progress.h"

namespace cairn::cli {

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
inline Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

enum class Style : std::uint8_t { kPlain, kBold, kDim, kGreen, kRed };

/// A piece of a line.
struct Styled {
  std::string text;
  Style style = Style::kPlain;
};

struct Screen {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

/// Threading: the progress sink is safe, the rest is confined.
class Terminal {
 public:
  explicit Terminal(bool json);

  bool json() const { return json_; }
  /// The terminal on standard output; nullopt unless it is one on which the cursor can move.
  std::optional<Screen> screen() const;
  /// To standard output, one line each.
  void line(std::string_view text) const;
  void line(std::initializer_list<Styled> pieces) const;
  void lines(const std::vector<std::string>& texts) const;
  /// To standard output, unchanged: elements of arrays, scripts, cursor movements.
  void raw(std::string_view bytes) const;
  /// The one JSON document of a call with --json; indent 0 is one line.
  void document(const Json& value, int indent = 2) const;
  /// A sentence that is not a result: on standard error, nothing with --json.
  void note(std::string_view text) const;
  /// Reports the error (in JSON with --json) and returns its exit code.
  int fail(const Error& error) const;

  /// On a terminal a bar with bytes, rate and time left, else a line for each tenth. Nothing with
  /// --json, nor for short work.
  ProgressSink progress(std::string_view what) const;

 private:
  std::string shown(const Styled& piece) const;

  bool json_;
  bool colour_;     // on standard output
  bool error_tty_;  // standard error is a terminal
};

/// Columns that UTF-8 text takes.
std::size_t width_of(std::string_view text);

/// "1 array", "2 arrays".
std::string counted(std::uint64_t number, std::string_view what);

/// The text cut to so many columns.
std::string cut(const std::string& text, std::size_t columns);

/// Lines of cells, padded to the widest of their column; the columns in `right` are aligned right.
std::vector<std::string> table(std::vector<std::vector<std::string>> rows,
                               const std::vector<std::size_t>& right);

}  // namespace cairn::cli
