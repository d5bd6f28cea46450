// SPDX-License-Identifier: Apache-2.0
// `ErrorList`: the errors of many similar things, as one error that names them all.
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
  /// How many sentences are kept; further errors are only counted.
  static constexpr std::size_t kMostSentences = 200;

  void add(Error error);
  /// Keeps the error of a result; false if there was one.
  template <typename T>
  bool take(const Result<T>& result) {
    if (!result) add(result.error());
    return result.has_value();
  }

  bool empty() const { return count_ == 0; }
  /// Success if there was no error. One error is returned as it was; of several, the first, with
  /// all sentences.
  Result<void> result() const;

 private:
  std::optional<Error> first_;
  std::string sentences_;
  std::size_t count_ = 0;
};

}  // namespace cairn
