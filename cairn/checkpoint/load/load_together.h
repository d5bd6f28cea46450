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

/// Another way to do it; empty: read_arrays().
using SharedReader =
    std::function<Result<void>(const OpenedPrefix&, const LoadWork&, const LoadOptions&)>;

/// load() of what is open.
Result<Loaded> load_opened(const Checkpoint& checkpoint, const LoadOptions& options,
                           Runtime& runtime, const SharedReader& share);

/// REQUIRES: runtime.ranks() > 1.
Result<Loaded> load_together(const std::string& path, const LoadOptions& options, Runtime& runtime);

}  // namespace cairn::inline checkpoint
