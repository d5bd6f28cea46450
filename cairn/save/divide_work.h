// SPDX-License-Identifier: Apache-2.0
// Which rank writes what of a save. Pure and deterministic, found by each rank alone: linear in
// leaves plus the boxes and chunks that the rank holds, whatever the number of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/save/save_plan.h"

namespace cairn {

/// Stored bytes of one safetensors job: whole blocks, and whole elements of every type, packed 4
/// and 6 bit ones included.
constexpr std::uint64_t kWriteBytes = 6 * kBlockBytes;
/// Shorter runs of a tensor are not written in place by the ranks that hold them: the boxes are
/// left in the attempt, and one rank puts the tensor together.
constexpr std::uint64_t kShortestRun = kMiB;

/// Fills in `work` of every array of all trees of a save. Of each box, replicas take equal shares
/// by bytes. `invalid_argument` (plan/unknown-rank): a leaf lies on ranks that the job does not
/// have.
Result<void> divide_work(const std::vector<std::vector<PlannedArray>*>& trees, int rank, int ranks);

}  // namespace cairn
