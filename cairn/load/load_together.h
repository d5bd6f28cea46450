// SPDX-License-Identifier: Apache-2.0
// A load by several ranks: all of one state of the checkpoint, or none.
#pragma once

#include <string>
#include <vector>

#include "cairn/load/load_opened.h"

namespace cairn {

/// Of a load by several ranks: is an array of so many bytes read by rank 0 and told to the others?
/// So it is if it is small and all `ranks` hold it whole, which they do where it lies on no mesh.
/// REQUIRES: sharding.check(shape).
bool is_told_by_rank_0(const Sharding& sharding, const Shape& shape, std::uint64_t bytes,
                       int ranks);

/// REQUIRES: runtime.ranks() > 1.
Result<Loaded> load_together(const std::string& path, const LoadOptions& options, Runtime& runtime);

}  // namespace cairn
