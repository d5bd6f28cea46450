// SPDX-License-Identifier: Apache-2.0
// `ErrorList`: what is wrong with many things of a kind, as one error that names all of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "cairn/base/result.h"

namespace cairn {

/// Threading: compatible.
class ErrorList {
 public:
  /// Sentences that are kept; of more errors only the number.
  static constexpr std::size_t kMostSentences = 200;

  void add(Error error);
  /// Keeps the error of a result; false if there was one.
  template <typename T>
  bool take(const Result<T>& result) {
    if (!result) add(result.error());
    return result.has_value();
  }

  bool empty() const { return count_ == 0; }
  /// Nothing if there was none. One error as it was; several as the first, with all sentences.
  Result<void> result() const;

 private:
  std::optional<Error> first_;
  std::string sentences_;
  std::size_t count_ = 0;
};

}  // namespace cairn
