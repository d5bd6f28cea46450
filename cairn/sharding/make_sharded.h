// SPDX-License-Identifier: Apache-2.0
// Sharded arrays with the memory that one rank needs for them.
#pragma once

#include <functional>

#include "cairn/sharding/sharded_array.h"

namespace cairn {

/// An array as `rank` is to hold it, with what `memory` gives for each of its boxes: one for all of
/// the rank's devices that hold it. `invalid_argument` as Sharding::check.
using BoxMemory = std::function<Result<Array>(const Box&)>;
Result<ShardedArray> make_sharded(DType dtype, const Shape& shape, const Sharding& sharding,
                                  int rank, const BoxMemory& memory);

/// As make_sharded(), allocating each distinct box once. An array that is not sharded is whole on
/// every rank. `invalid_argument` as Sharding::check.
Result<ShardedArray> allocate_sharded(DType dtype, const Shape& shape, const Sharding& sharding,
                                      int rank);

}  // namespace cairn
