// SPDX-License-Identifier: Apache-2.0
// A load by several ranks: all get one state of the checkpoint, or all fail.
#pragma once

#include <string>
#include <vector>

#include "cairn/load/load_opened.h"

namespace cairn {

/// Does rank 0 read an array of so many bytes and broadcast it? It does if the array is small and
/// whole on all `ranks`, as arrays without a mesh are. REQUIRES: sharding.check(shape).
bool is_told_by_rank_0(const Sharding& sharding, const Shape& shape, std::uint64_t bytes,
                       int ranks);

/// REQUIRES: runtime.ranks() > 1.
Result<Loaded> load_together(const std::string& path, const LoadOptions& options, Runtime& runtime);

}  // namespace cairn
