// SPDX-License-Identifier: Apache-2.0
// `Sharding`: which rank holds which box of an array. Every rank knows all of it, so that all can
// plan without communication.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "cairn/sharding/named_sharding.h"

namespace cairn {

/// Where boxes meet along one dimension.
struct Cut {
  Index step = 1;    ///< greatest size that divides all cuts; of an uncut dimension its size, or 1
  bool free = true;  ///< there is no cut
  bool operator==(const Cut&) const = default;
};

/// A box that a rank holds, on one or more of its devices.
struct Holding {
  Box box;
  std::size_t position = 0;  ///< of the first of its devices that holds it
  std::size_t group = 0;     ///< which of the different boxes it is; the same on every rank
  Ranks ranks;               ///< all that hold it
};

/// One device with everything, devices of a mesh, or a list of boxes and devices. Immutable; copies
/// share state and are cheap. Threading: safe.
class Sharding {
 public:
  /// Everything on device 0 of rank 0, for any shape. Allocates nothing.
  Sharding() = default;
  Sharding(NamedSharding named);  // NOLINT(google-explicit-constructor)
  /// All boxes of an array of this shape, of any sizes; equal boxes are replicas.
  /// `invalid_argument`: shape/*, sharding/box-outside, sharding/not-covered (an element is in no
  /// box), sharding/overlap (boxes neither equal nor disjoint), sharding/too-irregular (too many
  /// boxes that are far from a grid to check).
  static Result<Sharding> of_boxes(Shape shape, std::vector<Placement> placements);

  /// Null unless it is by axes of a mesh.
  const NamedSharding* named() const { return std::get_if<NamedSharding>(&kind_); }
  std::size_t device_count() const;
  /// REQUIRES: position < device_count().
  Device device(std::size_t position) const;

  /// May an array have this shape? `invalid_argument`: sharding/other-shape (of a list of boxes),
  /// and what NamedSharding::check says. At most linear in the dimensions.
  Result<void> check(const Shape& shape) const;

  // What follows REQUIRES: check(shape).
  Box box(std::size_t position, const Shape& shape) const;
  /// By dimension. Linear in the dimensions.
  std::vector<Cut> cuts(const Shape& shape) const;
  /// Devices of one group hold equal boxes; there are as many groups as different boxes.
  const DeviceGroups& groups(const Shape& shape) const;
  /// Each box that `rank` holds, once, in the order of devices. Linear in their number, except for
  /// the first time that a mesh is split over the same axes.
  std::vector<Holding> holdings(const Shape& shape, int rank) const;

  /// Same kind, same devices, same boxes.
  bool operator==(const Sharding& other) const;

 private:
  struct Boxes;
  const Boxes* boxes() const;
  std::variant<std::monostate, NamedSharding, std::shared_ptr<const Boxes>> kind_;
};

}  // namespace cairn
