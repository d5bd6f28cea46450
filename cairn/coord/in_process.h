// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process. With count 1: the coordinator of a process that runs alone.
#pragma once

#include <memory>
#include <vector>

#include "cairn/coord/coordinator.h"

namespace cairn::coord {

/// One coordinator for each rank, in order, each used by its own thread. They may be destroyed in
/// any order. Deadlines use the system's clock. `invalid_argument` (coord/bad-rank) unless 1 <=
/// count <= kMaxRanks.
Result<std::vector<std::unique_ptr<Coordinator>>> make_in_process_coordinators(int count);

}  // namespace cairn::coord
