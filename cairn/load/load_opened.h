// SPDX-License-Identifier: Apache-2.0
// Loads from an open checkpoint, with any way to read the arrays.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "cairn/load/load_options.h"
#include "cairn/runtime/runtime.h"
#include "cairn/sharding/sharded_array.h"

namespace cairn {

/// The wanted arrays, and memory for the boxes of each on this rank.
struct LoadWork {
  std::vector<std::size_t> which;
  std::vector<ShardedArray> destinations;
};

/// Reads what this rank holds.
Result<void> read_arrays(const OpenedPrefix& prefix, const LoadWork& work,
                         const LoadOptions& options, Runtime& runtime);

/// Another way to read the arrays; empty: read_arrays().
using SharedReader =
    std::function<Result<void>(const OpenedPrefix&, const LoadWork&, const LoadOptions&)>;

/// load() of an open checkpoint.
Result<Loaded> load_opened(const Checkpoint& checkpoint, const LoadOptions& options,
                           Runtime& runtime, const SharedReader& share);

}  // namespace cairn
