// SPDX-License-Identifier: Apache-2.0
// A load by several ranks: all of one state of the checkpoint, or none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cairn/checkpoint/load/load.h"

namespace cairn::inline checkpoint {

/// The arrays that are wanted, and memory for this rank's boxes of each.
struct LoadWork {
  std::vector<std::size_t> which;
  std::vector<ShardedArray> destinations;
};

/// Reads the work of this rank.
Result<void> read_arrays(const OpenedPrefix& prefix, const LoadWork& work,
                         const LoadOptions& options, Runtime& runtime);

/// Of a load by several ranks: is an array of so many bytes read by rank 0 and told to the others?
/// So it is if it is small and all `ranks` hold it whole, which they do where it lies on no mesh.
/// REQUIRES: sharding.check(shape).
bool is_told_by_rank_0(const Sharding& sharding, const Shape& shape, std::uint64_t bytes,
                       int ranks);

/// Another way to do it; empty: read_arrays().
using SharedReader =
    std::function<Result<void>(const OpenedPrefix&, const LoadWork&, const LoadOptions&)>;

/// load() of what is open.
Result<Loaded> load_opened(const Checkpoint& checkpoint, const LoadOptions& options,
                           Runtime& runtime, const SharedReader& share);

/// REQUIRES: runtime.ranks() > 1.
Result<Loaded> load_together(const std::string& path, const LoadOptions& options, Runtime& runtime);

}  // namespace cairn::inline checkpoint
