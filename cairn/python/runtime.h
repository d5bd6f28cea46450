// SPDX-License-Identifier: Apache-2.0
// The runtime of the Python process, and what calls from Python share.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <nanobind/nanobind.h>

#include "cairn/base/json.h"
#include "cairn/runtime/progress.h"
#include "cairn/runtime/runtime.h"

namespace cairn::python {

namespace nb = nanobind;

/// For calls that the ranks of a job make together: with the coordinator that cairn._ranks has
/// chosen. Logs to the logger "cairn" of Python. Throws what cairn._ranks.chosen() raises.
std::shared_ptr<Runtime> runtime();
/// For calls of this process alone: the same runtime or, if none was made for the ranks yet, one
/// without a coordinator. Does not choose ranks.
std::shared_ptr<Runtime> own_runtime();

/// The text of an object; null for "". Throws `invalid_argument` (python/json).
Json json_of(const std::string& text);

/// Seconds of Python as a duration, clamped to some thirty years.
std::chrono::nanoseconds span_of(double seconds);

/// A sink that calls a Python function (done, total), from any thread; empty for None. Exceptions
/// of the function are reported as unraisable.
ProgressSink progress_of(const nb::object& function);

/// Calls a Python function without arguments, from any thread; its exception becomes `internal`
/// (python/callback).
Result<void> call_back(const std::shared_ptr<const void>& function);

}  // namespace cairn::python
