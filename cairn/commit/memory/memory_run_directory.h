// SPDX-License-Identifier: Apache-2.0
// A run below memory://. What is removed is gone at once, and nothing is ever left of saves: there
// is no trash and no debris.
#pragma once

#include <memory>

#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/commit/run_directory.h"

namespace cairn {

/// The clock must outlive it, and its owner.
std::unique_ptr<RunDirectory> open_memory_run(const Uri& uri, Clock& clock);

}  // namespace cairn
