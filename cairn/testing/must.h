// SPDX-License-Identifier: Apache-2.0
// Results in tests: take the value, or fail and say why; or the reason alone.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cairn/base/result.h"
#include "cairn/base/uri.h"

namespace cairn::testing {

/// The value. An error ends the test with its text: it is thrown, and GoogleTest catches it.
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return *std::move(result);
}

inline void must(const Result<void>& result) {
  EXPECT_TRUE(result) << result.error().reason() << ": " << result.error().to_string();
}

/// A path that is local for certain.
inline LocalPath local(const std::string& path) { return must(LocalPath::parse(path)); }

/// The reason of the error; "none" for a success.
template <typename T>
std::string reason(const Result<T>& result) {
  return result ? "none" : std::string(result.error().reason());
}

}  // namespace cairn::testing
