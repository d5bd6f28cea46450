// SPDX-License-Identifier: Apache-2.0
// Regular expressions with the syntax and meaning of Python, searched within limits.
#pragma once

#include <memory>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

/// A compiled expression. Immutable; copies share it. Threading: safe.
class Regex {
 public:
  /// `invalid_argument`: what pcre_of_python() says, regex/unsupported also for what is too large
  /// or too complicated for PCRE2.
  static Result<Regex> compile(std::string_view pattern);

 private:
  friend class RegexSearch;
  explicit Regex(std::shared_ptr<const void> code) : code_(std::move(code)) {}
  std::shared_ptr<const void> code_;
};

/// Memory for searches, one after another. Threading: confined.
class RegexSearch {
 public:
  RegexSearch();
  ~RegexSearch();
  RegexSearch(const RegexSearch&) = delete;
  RegexSearch& operator=(const RegexSearch&) = delete;

  /// Sets the text of the next searches; it must outlive them. `invalid_argument` (regex/utf8).
  Result<void> in(std::string_view text);
  /// Is it found anywhere in the text, as by Python's re.search? Stops after a fixed amount of
  /// work. `invalid_argument`: regex/limit (more work or memory than any sensible expression
  /// needs). `resource_exhausted` (base/out-of-memory).
  Result<bool> finds(const Regex& regex);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn
