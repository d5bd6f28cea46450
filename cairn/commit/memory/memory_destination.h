// SPDX-License-Identifier: Apache-2.0
// memory:// as the destination of saves: for this process alone, gone when it ends. Data waits
// below `.cairn-<attempt>/` and becomes visible in one step.
#pragma once

#include <memory>

#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/commit/destination.h"

namespace cairn {

/// `clock` must outlive it.
std::unique_ptr<Destination> open_memory_destination(const Uri& uri, Clock& clock);

}  // namespace cairn
