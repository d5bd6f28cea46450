// SPDX-License-Identifier: Apache-2.0
// The one place where an exception becomes an error.
#pragma once

#include <type_traits>

#include "cairn/base/result.h"

namespace cairn {

/// The exception being handled, as an error: `resource_exhausted` (base/out-of-memory) for a failed
/// allocation, otherwise `internal` (async/exception). A failed allocation needs no further memory
/// here. REQUIRES: called in a handler.
Error caught_error();

/// Allocates, while there is memory, what the first exception of this thread needs; without it the
/// C++ runtime would end the program. Called where threads and tasks begin; later calls cost
/// nothing.
void prepare_for_exceptions();

/// Calls `work`, which returns a Result; an exception becomes an error.
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
