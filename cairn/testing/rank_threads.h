// SPDX-License-Identifier: Apache-2.0
// Ranks as threads, for tests of what a job does together.
#pragma once

#include <functional>

#include "cairn/coord/coordinator.h"

namespace cairn::testing {

/// Runs `body` once for each of `count` ranks, all at the same time, and waits for them.
void run_ranks(int count, const std::function<void(coord::Coordinator&)>& body);

}  // namespace cairn::testing
