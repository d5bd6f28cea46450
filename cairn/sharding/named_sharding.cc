// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/named_sharding.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/sharding/refuse.h"

namespace cairn {
namespace {

std::string axis_names(const Mesh& mesh) {
  std::string names;
  for (const MeshAxis& axis : mesh.axes()) names += (names.empty() ? "" : ", ") + axis.name;
  return names;
}

}  // namespace

struct NamedSharding::State {
  // How one dimension is cut.
  struct Dimension {
    Index parts = 1;
    AxisSet set = 0;
    std::vector<std::size_t> axes;  // the slowest first
  };

  Mesh mesh;
  PartitionSpec spec;
  std::vector<Dimension> dimensions;
};

Result<NamedSharding> NamedSharding::make(Mesh mesh, PartitionSpec spec) {
  std::vector<State::Dimension> dimensions;
  AxisSet used = 0;
  for (const PartitionSpec::Entry& entry : spec.entries()) {
    State::Dimension dimension;
    for (const std::string& name : entry) {
      const auto axis = mesh.find_axis(name);
      if (!axis) {
        return refuse("sharding/unknown-axis",
                      fmt::format("axis '{}' of {} is not in the mesh, which has: {}", name,
                                  spec.to_string(), axis_names(mesh)));
      }
      const AxisSet bit = AxisSet{1} << *axis;
      if (((used | dimension.set) & bit) != 0) {
        return refuse("sharding/axis-twice",
                      fmt::format("axis '{}' occurs twice in {}", name, spec.to_string()));
      }
      dimension.set |= bit;
      dimension.parts *= mesh.axes()[*axis].size;
      dimension.axes.push_back(*axis);
    }
    used |= dimension.set;
    dimensions.push_back(std::move(dimension));
  }
  return NamedSharding(std::make_shared<const State>(
      State{std::move(mesh), std::move(spec), std::move(dimensions)}));
}

const Mesh& NamedSharding::mesh() const { return state_->mesh; }
const PartitionSpec& NamedSharding::spec() const { return state_->spec; }

Result<void> NamedSharding::check(const Shape& shape) const {
  if (spec().size() > shape.size()) {
    return refuse(
        "sharding/spec-too-long",
        fmt::format("{} has {} entries, but an array of shape {} has {} dimensions",
                    spec().to_string(), spec().size(), cairn::to_string(shape), shape.size()));
  }
  for (std::size_t d = 0; d < spec().size(); ++d) {
    if (shape[d] % parts(d) == 0) continue;
    return refuse(
        "sharding/uneven",
        fmt::format("dimension {} of shape {} has size {}, which does not divide into the "
                    "{} parts of '{}' in {}",
                    d, cairn::to_string(shape), shape[d], parts(d),
                    fmt::join(spec().entries()[d], "', '"), spec().to_string()));
  }
  return {};
}

Index NamedSharding::parts(std::size_t dim) const {
  return dim < state_->dimensions.size() ? state_->dimensions[dim].parts : 1;
}

Shape NamedSharding::shard_shape(const Shape& shape) const {
  Shape shard = shape;
  for (std::size_t d = 0; d < spec().size(); ++d) shard[d] /= parts(d);
  return shard;
}

Box NamedSharding::box(std::size_t position, const Shape& shape) const {
  Box box = Box::whole(shape);
  for (std::size_t d = 0; d < spec().size(); ++d) {
    Index part = 0;
    for (const std::size_t axis : state_->dimensions[d].axes) {
      part = part * mesh().axes()[axis].size + mesh().coordinate(position, axis);
    }
    const Index step = shape[d] / parts(d);
    box.begin[d] = part * step;
    box.end[d] = box.begin[d] + step;
  }
  return box;
}

std::vector<Placement> NamedSharding::placements(const Shape& shape) const {
  std::vector<Placement> placements;
  placements.reserve(mesh().size());
  for (std::size_t i = 0; i < mesh().size(); ++i) {
    placements.push_back({box(i, shape), mesh().devices()[i]});
  }
  return placements;
}

std::vector<std::size_t> NamedSharding::replica_ids(const Shape& shape) const {
  const DeviceGroups& equal = groups(shape);
  std::vector<std::size_t> seen(equal.size(), 0);
  std::vector<std::size_t> ids;
  ids.reserve(mesh().size());
  for (std::size_t i = 0; i < mesh().size(); ++i) ids.push_back(seen[equal.group_of(i)]++);
  return ids;
}

const DeviceGroups& NamedSharding::groups(const Shape& shape) const {
  AxisSet set = 0;
  for (std::size_t d = 0; d < spec().size(); ++d) {
    // All parts of nothing are the same part.
    if (shape[d] != 0) set |= state_->dimensions[d].set;
  }
  return mesh().groups(set);
}

bool NamedSharding::operator==(const NamedSharding& other) const {
  return state_ == other.state_ || (spec() == other.spec() && mesh() == other.mesh());
}

}  // namespace cairn
