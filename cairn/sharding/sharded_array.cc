// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/sharded_array.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/sharding/refuse.h"

namespace cairn {
namespace {

Result<void> check_shard(const Shard& shard, DType dtype, const Shape& shape,
                         const Sharding& sharding) {
  if (shard.position >= sharding.device_count()) {
    return refuse("sharding/no-device", fmt::format("a shard is at position {} of {} devices",
                                                    shard.position, sharding.device_count()));
  }
  const Box box = sharding.box(shard.position, shape);
  if (shard.data.dtype() != dtype) {
    return refuse("sharding/dtype-mismatch",
                  fmt::format("the memory of box {} is {}, the array is {}", box.to_string(),
                              dtype_name(shard.data.dtype()), dtype_name(dtype)));
  }
  if (shard.data.shape() != box.shape()) {
    return refuse("sharding/shape-mismatch",
                  fmt::format("the memory of box {} has shape {}", box.to_string(),
                              to_string(shard.data.shape())));
  }
  return {};
}

std::vector<Shard> alone(Array array) {
  std::vector<Shard> shards(1);
  shards.front().data = std::move(array);
  return shards;
}

}  // namespace

ShardedArray::ShardedArray(Array array)
    : ShardedArray(State{array.dtype(), array.shape(), Sharding(), alone(std::move(array))}) {}

Result<ShardedArray> ShardedArray::make(DType dtype, Shape shape, Sharding sharding,
                                        std::vector<Shard> shards) {
  CAIRN_TRY(dense_nbytes(dtype, shape));
  CAIRN_TRY(sharding.check(shape));
  for (const Shard& shard : shards) CAIRN_TRY(check_shard(shard, dtype, shape, sharding));
  return ShardedArray(State{dtype, std::move(shape), std::move(sharding), std::move(shards)});
}

std::uint64_t ShardedArray::nbytes() const {
  return Box::whole(shape()).elements() * item_size(dtype());
}

bool ShardedArray::whole() const {
  // A box within the array that has its shape is all of it.
  return !shards().empty() && shards().front().data.shape() == shape();
}

Result<void> check_memory(const ShardedArray& array, int rank) {
  const DeviceGroups& groups = array.sharding().groups(array.shape());
  for (const Holding& held : array.sharding().holdings(array.shape(), rank)) {
    const bool here = std::ranges::any_of(array.shards(), [&](const Shard& shard) {
      return groups.group_of(shard.position) == held.group;
    });
    if (here || held.box.empty()) continue;
    return Error(Code::kInvalidArgument, "plan/no-memory",
                 fmt::format("rank {} holds the box {} by its sharding, but has no memory of it",
                             rank, held.box.to_string()));
  }
  return {};
}

}  // namespace cairn
