// SPDX-License-Identifier: Apache-2.0
// `ShardedArray`: one global array, which rank holds which box of it, and the memory of the boxes
// on this rank.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "cairn/array/array.h"
#include "cairn/sharding/sharding.h"

namespace cairn {

/// Memory of one box, held by this process.
struct Shard {
  std::size_t position = 0;  ///< of its device in the sharding
  Array data;                ///< has the box's shape
};

/// Every rank knows the whole sharding, but has memory for its own boxes alone. Immutable except
/// for the memory itself; a copy shares everything and costs one reference count. Threading: safe;
/// callers synchronise access to the memory.
class ShardedArray {
 public:
  /// A plain array: one box, on device 0 of rank 0.
  ShardedArray(Array array);  // NOLINT(google-explicit-constructor)

  /// `invalid_argument`: shape/*, what Sharding::check says, sharding/no-device (a shard's position
  /// is none), sharding/shape-mismatch, sharding/dtype-mismatch.
  static Result<ShardedArray> make(DType dtype, Shape shape, Sharding sharding,
                                   std::vector<Shard> shards);

  DType dtype() const { return state_->dtype; }
  const Shape& shape() const { return state_->shape; }
  const Sharding& sharding() const { return state_->sharding; }
  /// The boxes that this process holds.
  const std::vector<Shard>& shards() const { return state_->shards; }
  Box box_of(const Shard& shard) const { return sharding().box(shard.position, shape()); }
  /// elements * item size, of the global array.
  std::uint64_t nbytes() const;

  /// This process holds the whole array (once, or as replicas).
  bool whole() const;
  /// REQUIRES: whole().
  const Array& array() const { return shards().front().data; }

 private:
  struct State {
    DType dtype;
    Shape shape;
    Sharding sharding;
    std::vector<Shard> shards;
  };
  explicit ShardedArray(State state) : state_(std::make_shared<const State>(std::move(state))) {}
  std::shared_ptr<const State> state_;
};

/// Does this process have memory for each box that `rank` holds? `invalid_argument`
/// (plan/no-memory).
Result<void> check_memory(const ShardedArray& array, int rank);

}  // namespace cairn
