// SPDX-License-Identifier: Apache-2.0
// Whether boxes cover a whole array, each element once.
#pragma once

#include <vector>

#include "cairn/array/shape.h"

namespace cairn {

/// Equal boxes count once, empty boxes not at all. About n log n for boxes close to a grid, at
/// worst n * 2^rank, up to a fixed limit. `invalid_argument`: sharding/not-covered,
/// sharding/overlap, sharding/too-irregular (past the limit). REQUIRES: every box lies within
/// `shape`, which is valid.
Result<void> check_tiling(const Shape& shape, const std::vector<const Box*>& boxes);

}  // namespace cairn
