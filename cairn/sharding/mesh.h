// SPDX-License-Identifier: Apache-2.0
// `Mesh`: the devices of a job in a grid with named axes. See `named_sharding.h` for arrays on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/array/shape.h"
#include "cairn/sharding/device_groups.h"

namespace cairn {

struct MeshAxis {
  std::string name;
  Index size = 1;
  bool operator==(const MeshAxis&) const = default;
};

/// "fsdp=4,tp=2", as people write a mesh. A name is everything before the '='; nothing is trimmed.
/// `invalid_argument` (mesh/syntax); Mesh checks sizes and names.
Result<std::vector<MeshAxis>> parse_mesh_axes(std::string_view text);

/// A set of axes: bit i for axis i of a mesh.
using AxisSet = std::uint32_t;

/// Immutable; copies share state and are cheap. Threading: safe.
class Mesh {
 public:
  static constexpr std::size_t kMaxAxes = 32;
  static constexpr std::size_t kMaxDevices = std::size_t{1} << 20;

  /// Devices in C order: the last axis varies fastest. No axes: one device. `invalid_argument`:
  /// mesh/axis-name (empty, twice, not UTF-8), mesh/axis-count, mesh/axis-size (under 1, or too
  /// large for kMaxDevices), mesh/device-count, mesh/device-twice (by id).
  static Result<Mesh> make(std::vector<MeshAxis> axes, std::vector<Device> devices);
  /// The usual case: devices 0, 1, ..., equally many for each of `ranks` processes, neighbours to
  /// the same one. `invalid_argument` also for mesh/rank-count (does not divide the devices).
  static Result<Mesh> over_ranks(std::vector<MeshAxis> axes, int ranks);

  const std::vector<MeshAxis>& axes() const;
  const std::vector<Device>& devices() const;
  std::size_t size() const { return devices().size(); }
  std::optional<std::size_t> find_axis(std::string_view name) const;
  /// Coordinate of a device along an axis. REQUIRES: position < size(), axis < axes().size().
  Index coordinate(std::size_t position, std::size_t axis) const;
  /// Positions of the devices of a rank, ascending.
  std::vector<std::size_t> positions_of(int rank) const;

  /// Groups the devices by their coordinates along `axes`: one group holds equal boxes of an array
  /// split over these axes. Groups are numbered by their first device. The first call for a set of
  /// axes visits the whole mesh, later ones are a lookup. Valid as long as a copy of the mesh
  /// exists.
  const DeviceGroups& groups(AxisSet axes) const;

  /// Same axes, same devices.
  bool operator==(const Mesh& other) const;

 private:
  struct State;
  explicit Mesh(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace cairn
