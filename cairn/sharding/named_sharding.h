// SPDX-License-Identifier: Apache-2.0
// `NamedSharding`: which device of a mesh holds which box, by a partition spec, as JAX has it.
#pragma once

#include <memory>
#include <vector>

#include "cairn/sharding/mesh.h"
#include "cairn/sharding/partition_spec.h"

namespace cairn {

/// A box of the global array and the device that holds it.
struct Placement {
  Box box;
  Device device;
  bool operator==(const Placement&) const = default;
};

/// For arrays of any shape that check() accepts. Immutable; copies share state and are cheap.
/// Threading: safe.
class NamedSharding {
 public:
  /// `invalid_argument`: sharding/unknown-axis, sharding/axis-twice.
  static Result<NamedSharding> make(Mesh mesh, PartitionSpec spec);

  const Mesh& mesh() const;
  const PartitionSpec& spec() const;

  /// `invalid_argument`: sharding/spec-too-long (more entries than dimensions), sharding/uneven (a
  /// dimension that does not divide by its number of parts).
  Result<void> check(const Shape& shape) const;
  /// Into how many parts dimension `dim` is cut.
  Index parts(std::size_t dim) const;

  // What follows REQUIRES: check(shape).
  Shape shard_shape(const Shape& shape) const;
  /// The box of the device at `position` of the mesh.
  Box box(std::size_t position, const Shape& shape) const;
  /// Of all devices, in mesh order.
  std::vector<Placement> placements(const Shape& shape) const;
  /// For all devices in mesh order: how many before it hold the same box.
  std::vector<std::size_t> replica_ids(const Shape& shape) const;
  /// Devices of one group hold equal boxes, those of different groups different ones.
  const DeviceGroups& groups(const Shape& shape) const;

  bool operator==(const NamedSharding& other) const;

 private:
  struct State;
  explicit NamedSharding(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace cairn
