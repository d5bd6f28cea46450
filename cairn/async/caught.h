// SPDX-License-Identifier: Apache-2.0
// The one place where an exception becomes an error.
#pragma once

#include <type_traits>

#include "cairn/base/result.h"

namespace cairn {

/// The exception that is being handled: `resource_exhausted` (base/out-of-memory) for a failed
/// allocation, otherwise `internal` (async/exception). Needs no memory for the first.
/// REQUIRES: called in a handler.
Error caught_error();

/// Makes what the first exception of this thread needs, while there is memory for that: without it
/// the C++ runtime ends the program. Called where threads begin and where work does; costs nothing
/// from the second call on.
void prepare_for_exceptions();

/// What `work` returns, which is a Result; an exception of it is an error.
template <typename Work>
std::invoke_result_t<Work> without_exceptions(Work&& work) {
  prepare_for_exceptions();
  try {
    return work();
  } catch (...) {
    return caught_error();
  }
}

}  // namespace cairn
