// SPDX-License-Identifier: Apache-2.0
// Arrays of a running job onto other shardings, through host memory and the coordinator. A load
// needs none of this: it reads what each rank is to hold.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "cairn/runtime/runtime.h"
#include "cairn/sharding/sharded_array.h"

namespace cairn {

struct ReshardOptions {
  /// Ranks exchange pieces of at most so many bytes; at most coord::kMaxPayload.
  std::uint64_t memory_limit = 4 * kMiB;
  /// Longest time until all ranks are done.
  std::chrono::nanoseconds timeout = std::chrono::hours(2);
};

/// The same elements on another sharding; without one (`Sharding()`), whole on every rank. An array
/// without a sharding is rank 0's; what others have in its place says its type and shape alone.
/// Boxes that one shard of this rank has are views of its memory, others are new.
///
/// Every rank makes the same call. Where each rank has what it is to hold, nobody talks; otherwise
/// everything goes through rank 0, piece by piece. `invalid_argument`: what Sharding::check says,
/// plan/unknown-rank, plan/no-memory; `failed_precondition` (reshard/ranks-disagree); errors of the
/// coordinator. One rank's error is everybody's.
Result<ShardedArray> reshard(const ShardedArray& array, const Sharding& target, Runtime& runtime,
                             const ReshardOptions& options = {});

/// Rank 0's array on every rank, or on a sharding, in pieces of at most `memory_limit` bytes.
Result<ShardedArray> broadcast_tensor(const Array& tensor, std::uint64_t memory_limit,
                                      Runtime& runtime, const Sharding& target = {});

/// The whole array on every rank, floats cast as put_dtype() does. One without a sharding is there
/// already. Errors of reshard() and put_dtype().
Result<Array> to_host(const ShardedArray& array, std::optional<DType> float_dtype,
                      Runtime& runtime);

}  // namespace cairn
