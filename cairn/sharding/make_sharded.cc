// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/make_sharded.h"

#include <utility>
#include <vector>

namespace cairn {

Result<ShardedArray> make_sharded(DType dtype, const Shape& shape, const Sharding& sharding,
                                  int rank, const BoxMemory& memory) {
  CAIRN_TRY(sharding.check(shape));
  std::vector<Shard> shards;
  for (const Holding& held : sharding.holdings(shape, rank)) {
    CAIRN_TRY_ASSIGN(auto array, memory(held.box));
    shards.push_back({held.position, std::move(array)});
  }
  return ShardedArray::make(dtype, shape, sharding, std::move(shards));
}

Result<ShardedArray> allocate_sharded(DType dtype, const Shape& shape, const Sharding& sharding,
                                      int rank) {
  if (sharding == Sharding()) {
    CAIRN_TRY_ASSIGN(auto whole, Array::allocate(dtype, shape));
    return ShardedArray(std::move(whole));
  }
  return make_sharded(dtype, shape, sharding, rank,
                      [&](const Box& box) { return Array::allocate(dtype, box.shape()); });
}

}  // namespace cairn
