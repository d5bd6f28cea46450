// SPDX-License-Identifier: Apache-2.0
// The one runtime of the Python process, and what calls from Python have in common.
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

/// For what the ranks of a job do together: with the coordinator that cairn._ranks has chosen. It
/// speaks through Python's logger "cairn". Throws what cairn._ranks.chosen() raises.
std::shared_ptr<Runtime> runtime();
/// For what this process does by itself: the same, or if nobody has asked for that yet, one without
/// a coordinator. Chooses nothing.
std::shared_ptr<Runtime> own_runtime();

/// The text of an object; null for "". Throws `invalid_argument` (python/json).
Json json_of(const std::string& text);

/// Seconds as Python counts them; more than the machine can count is as much as it can.
std::chrono::nanoseconds span_of(double seconds);

/// Calls a Python function (done, total), from any thread; empty for None. What the function raises
/// is reported as Python reports what it cannot raise.
ProgressSink progress_of(const nb::object& function);

/// Calls a Python function without arguments, from any thread; its exception becomes `internal`
/// (python/callback).
Result<void> call_back(const std::shared_ptr<const void>& function);

}  // namespace cairn::python
