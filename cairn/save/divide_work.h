// SPDX-License-Identifier: Apache-2.0
// Decides which rank writes which part of a save. Pure and deterministic; each rank computes it
// alone, linear in leaves plus the boxes and chunks that it holds, whatever the number of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/save/save_plan.h"

namespace cairn {

/// Stored bytes of one safetensors job: whole blocks, and whole elements of every type, including
/// packed types of 4 and 6 bits.
constexpr std::uint64_t kWriteBytes = 6 * kBlockBytes;
/// Shorter runs of a tensor are not written in place by the ranks that hold them: they leave their
/// boxes in the attempt, and one rank assembles the tensor.
constexpr std::uint64_t kShortestRun = kMiB;

/// Fills in `work` of every array of all trees of a save. Replicas of a box share its bytes
/// equally. `invalid_argument` (plan/unknown-rank): a leaf is on ranks that the job does not have.
Result<void> divide_work(const std::vector<std::vector<PlannedArray>*>& trees, int rank, int ranks);

}  // namespace cairn
