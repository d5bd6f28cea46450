// SPDX-License-Identifier: Apache-2.0
// A load of what is open, with one way or another to read the arrays.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "cairn/load/load_options.h"
#include "cairn/runtime/runtime.h"
#include "cairn/sharding/sharded_array.h"

namespace cairn {

/// The arrays that are wanted, and memory for this rank's boxes of each.
struct LoadWork {
  std::vector<std::size_t> which;
  std::vector<ShardedArray> destinations;
};

/// Reads the work of this rank.
Result<void> read_arrays(const OpenedPrefix& prefix, const LoadWork& work,
                         const LoadOptions& options, Runtime& runtime);

/// Another way to do it; empty: read_arrays().
using SharedReader =
    std::function<Result<void>(const OpenedPrefix&, const LoadWork&, const LoadOptions&)>;

/// load() of what is open.
Result<Loaded> load_opened(const Checkpoint& checkpoint, const LoadOptions& options,
                           Runtime& runtime, const SharedReader& share);

}  // namespace cairn
