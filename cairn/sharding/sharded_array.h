// SPDX-License-Identifier: Apache-2.0
// `ShardedArray`: one global array, who holds which box of it, and the memory of the boxes held
// here.
#pragma once

#include <vector>

#include "cairn/array/array.h"

namespace cairn::inline sharding {

/// One accelerator (or host) of the job.
struct Device {
  int id = 0;
  int rank = 0;  ///< the process that it belongs to
  bool operator==(const Device&) const = default;
};

/// A box of the global array and the device that holds it.
struct Placement {
  Box box;
  Device device;
  bool operator==(const Placement&) const = default;
};

/// Memory of one box, held by this process.
struct Shard {
  std::size_t placement = 0;  ///< index into placements()
  Array data;                 ///< has the box's shape
};

/// Every rank knows all placements, so that it can plan without talking; memory is there for its
/// own boxes alone. Equal boxes are replicas. Copies share memory. Threading: compatible.
class ShardedArray {
 public:
  /// A plain array: one box, on device 0 of rank 0.
  ShardedArray(Array array);  // NOLINT(google-explicit-constructor)

  /// `invalid_argument`: sharding/box-outside, sharding/shape-mismatch, sharding/dtype-mismatch,
  /// sharding/no-placement (a shard names none), sharding/not-covered (some element is in no box),
  /// sharding/overlap (boxes neither equal nor disjoint), sharding/too-irregular (past the limit of
  /// what is checked: very many boxes that are far from a grid).
  static Result<ShardedArray> make(DType dtype, Shape shape, std::vector<Placement> placements,
                                   std::vector<Shard> shards);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const std::vector<Placement>& placements() const { return placements_; }
  /// What this process holds.
  const std::vector<Shard>& shards() const { return shards_; }
  const Box& box_of(const Shard& shard) const { return placements_[shard.placement].box; }
  /// elements * item size, of the global array.
  std::uint64_t nbytes() const;

  /// What this process holds is the whole array (once, or as replicas).
  bool whole() const;
  /// REQUIRES: whole().
  const Array& array() const { return shards_.front().data; }

 private:
  ShardedArray() = default;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  std::vector<Placement> placements_;
  std::vector<Shard> shards_;
};

}  // namespace cairn::inline sharding
