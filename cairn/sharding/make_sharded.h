// SPDX-License-Identifier: Apache-2.0
// Sharded arrays with the memory that one rank needs for them.
#pragma once

#include <functional>

#include "cairn/sharding/sharded_array.h"

namespace cairn {

/// An array as `rank` holds it. Calls `memory` once for each of its distinct boxes; all devices of
/// the rank with that box share the memory. `invalid_argument` as Sharding::check.
using BoxMemory = std::function<Result<Array>(const Box&)>;
Result<ShardedArray> make_sharded(DType dtype, const Shape& shape, const Sharding& sharding,
                                  int rank, const BoxMemory& memory);

/// As make_sharded(), allocating each distinct box once. An array that is not sharded is whole on
/// every rank. `invalid_argument` as Sharding::check.
Result<ShardedArray> allocate_sharded(DType dtype, const Shape& shape, const Sharding& sharding,
                                      int rank);

}  // namespace cairn
