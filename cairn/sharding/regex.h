// SPDX-License-Identifier: Apache-2.0
// Regular expressions in Python's syntax and with its meaning, searched for within bounds.
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

/// Memory for any number of searches, one after the other. Threading: confined.
class RegexSearch {
 public:
  RegexSearch();
  ~RegexSearch();
  RegexSearch(const RegexSearch&) = delete;
  RegexSearch& operator=(const RegexSearch&) = delete;

  /// Where to search from now on; must outlive the searches. `invalid_argument` (regex/utf8).
  Result<void> in(std::string_view text);
  /// Is it anywhere in the text, as Python's re.search? Ends after a fixed amount of work.
  /// `invalid_argument`: regex/limit (more work, or memory, than any sensible expression needs).
  /// `resource_exhausted` (base/out-of-memory).
  Result<bool> finds(const Regex& regex);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn
