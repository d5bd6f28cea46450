// SPDX-License-Identifier: Apache-2.0
// Moves arrays of a running job to other shardings, through host memory and the coordinator. Loads
// do not need it: each rank reads what it holds.
#pragma once

#include <chrono>
#include <cstdint>

#include "cairn/runtime/runtime.h"
#include "cairn/sharding/sharded_array.h"

namespace cairn {

struct ReshardOptions {
  /// Size limit of the pieces that ranks exchange; at most coord::kMaxPayload.
  std::uint64_t memory_limit = 4 * kMiB;
  /// Time limit for all ranks to be done.
  std::chrono::nanoseconds timeout = std::chrono::hours(2);
};

/// The same elements on another sharding; without one (`Sharding()`), whole on every rank. An array
/// without a sharding is that of rank 0; other ranks pass its type and shape alone. Boxes inside
/// one shard of this rank are views of its memory, others are new.
///
/// Every rank makes the same call. If each rank has already what it needs, no messages are sent;
/// otherwise everything passes through rank 0, piece by piece. `invalid_argument`: those of
/// Sharding::check, plan/unknown-rank, plan/no-memory; `failed_precondition`
/// (reshard/ranks-disagree); errors of the coordinator. If one rank fails, all get its error.
Result<ShardedArray> reshard(const ShardedArray& array, const Sharding& target, Runtime& runtime,
                             const ReshardOptions& options = {});

}  // namespace cairn
