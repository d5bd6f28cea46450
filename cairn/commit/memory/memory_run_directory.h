// SPDX-License-Identifier: Apache-2.0
// A run below memory://. Removals take effect at once, and dead saves leave nothing: there is no
// trash and no debris.
#pragma once

#include <memory>

#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/commit/run_directory.h"

namespace cairn {

/// The clock must outlive it, and its owner.
std::unique_ptr<RunDirectory> open_memory_run(const Uri& uri, Clock& clock);

}  // namespace cairn
