// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/sharded_array.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/sharding/tiling.h"

namespace cairn::inline sharding {
namespace {

Error refuse(const char* reason, std::string message) {
  return Error(Code::kInvalidArgument, reason, std::move(message));
}

Result<void> check_box(const Placement& placement, const Shape& shape) {
  const Box& box = placement.box;
  const auto outside = [&](std::string_view what) {
    return refuse("sharding/box-outside",
                  fmt::format("{} of device {} does not lie within shape {}", what,
                              placement.device.id, to_string(shape)));
  };
  if (box.begin.size() != shape.size() || box.end.size() != shape.size()) {
    return outside(fmt::format("a box of rank {}", box.rank()));
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (box.begin[i] < 0 || box.begin[i] > box.end[i] || box.end[i] > shape[i]) {
      return outside("box " + box.to_string());
    }
  }
  return {};
}

Result<void> check_placements(const Shape& shape, const std::vector<Placement>& placements) {
  if (placements.empty()) {
    return refuse("sharding/not-covered",
                  fmt::format("shape {} has no boxes; give at least one", to_string(shape)));
  }
  std::vector<const Box*> boxes;
  boxes.reserve(placements.size());
  for (const Placement& placement : placements) {
    CAIRN_TRY(check_box(placement, shape));
    boxes.push_back(&placement.box);
  }
  return check_tiling(shape, boxes);
}

Result<void> check_shard(const Shard& shard, DType dtype,
                         const std::vector<Placement>& placements) {
  if (shard.placement >= placements.size()) {
    return refuse("sharding/no-placement", fmt::format("a shard names placement {} of {}",
                                                       shard.placement, placements.size()));
  }
  const Box& box = placements[shard.placement].box;
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

}  // namespace

ShardedArray::ShardedArray(Array array) : dtype_(array.dtype()), shape_(array.shape()) {
  placements_.push_back({Box::whole(shape_), Device{}});
  shards_.push_back({0, std::move(array)});
}

Result<ShardedArray> ShardedArray::make(DType dtype, Shape shape, std::vector<Placement> placements,
                                        std::vector<Shard> shards) {
  CAIRN_TRY(dense_nbytes(dtype, shape));
  CAIRN_TRY(check_placements(shape, placements));
  for (const Shard& shard : shards) CAIRN_TRY(check_shard(shard, dtype, placements));
  ShardedArray array;
  array.dtype_ = dtype;
  array.shape_ = std::move(shape);
  array.placements_ = std::move(placements);
  array.shards_ = std::move(shards);
  return array;
}

std::uint64_t ShardedArray::nbytes() const {
  return Box::whole(shape_).elements() * item_size(dtype_);
}

bool ShardedArray::whole() const {
  return !shards_.empty() && box_of(shards_.front()) == Box::whole(shape_);
}

}  // namespace cairn::inline sharding
