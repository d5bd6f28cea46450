// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/mesh.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <fmt/format.h>

#include "cairn/async/mutex.h"
#include "cairn/base/utf8.h"
#include "cairn/sharding/refuse.h"

namespace cairn {
namespace {

Result<void> check_names(const std::vector<MeshAxis>& axes) {
  if (axes.size() > Mesh::kMaxAxes) {
    return refuse("mesh/axis-count", fmt::format("a mesh has {} axes; at most {} are possible",
                                                 axes.size(), Mesh::kMaxAxes));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name.empty() || !is_utf8(axes[i].name)) {
      return refuse("mesh/axis-name",
                    fmt::format("the name of mesh axis {} is empty or not UTF-8", i));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (axes[j].name != axes[i].name) continue;
      return refuse("mesh/axis-name", fmt::format("axes {} and {} of a mesh are both called '{}'",
                                                  j, i, axes[i].name));
    }
  }
  return {};
}

Result<std::size_t> count_devices(const std::vector<MeshAxis>& axes) {
  std::size_t count = 1;
  for (const MeshAxis& axis : axes) {
    const auto most = static_cast<Index>(Mesh::kMaxDevices / count);
    if (axis.size < 1 || axis.size > most) {
      return refuse("mesh/axis-size",
                    fmt::format("mesh axis '{}' has size {}; sizes begin at 1, and a mesh has at "
                                "most {} devices",
                                axis.name, axis.size, Mesh::kMaxDevices));
    }
    count *= static_cast<std::size_t>(axis.size);
  }
  return count;
}

Result<void> check_devices(const std::vector<Device>& devices) {
  std::vector<int> ids;
  ids.reserve(devices.size());
  for (const Device& device : devices) ids.push_back(device.id);
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return {};
  return refuse("mesh/device-twice",
                fmt::format("device {} is in the mesh more than once", *twice));
}

Result<MeshAxis> parse_axis(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  const std::size_t digits = equals == std::string_view::npos ? text.size() : equals + 1;
  Index size = 0;
  const char* last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data() + digits, last, size);
  if (status != std::errc() || end != last) {
    return refuse(
        "mesh/syntax",
        fmt::format("'{}' is not an axis of a mesh; write a name and a size, such as fsdp=4",
                    text));
  }
  return MeshAxis{std::string(text.substr(0, equals)), size};
}

}  // namespace

Result<std::vector<MeshAxis>> parse_mesh_axes(std::string_view text) {
  std::vector<MeshAxis> axes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    CAIRN_TRY_ASSIGN(auto axis, parse_axis(text.substr(begin, end - begin)));
    axes.push_back(std::move(axis));
    begin = end + 1;
  }
  return axes;
}

struct Mesh::State {
  std::vector<MeshAxis> axes;
  std::vector<std::size_t> strides;
  std::vector<Device> devices;

  Mutex mutex;
  std::unordered_map<AxisSet, std::unique_ptr<const DeviceGroups>> groups CAIRN_GUARDED_BY(mutex);

  std::size_t coordinate(std::size_t position, std::size_t axis) const {
    return position / strides[axis] % static_cast<std::size_t>(axes[axis].size);
  }
  DeviceGroups make_groups(AxisSet set) const;
};

DeviceGroups Mesh::State::make_groups(AxisSet set) const {
  std::vector<int> ranks;
  std::vector<std::size_t> group_of;
  std::unordered_map<std::size_t, std::size_t> numbers;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if ((set >> axis & 1U) != 0) place += coordinate(i, axis) * strides[axis];
    }
    group_of.push_back(numbers.try_emplace(place, numbers.size()).first->second);
    ranks.push_back(devices[i].rank);
  }
  return DeviceGroups(ranks, std::move(group_of));
}

Result<Mesh> Mesh::make(std::vector<MeshAxis> axes, std::vector<Device> devices) {
  CAIRN_TRY(check_names(axes));
  CAIRN_TRY_ASSIGN(const std::size_t count, count_devices(axes));
  if (devices.size() != count) {
    return refuse(
        "mesh/device-count",
        fmt::format("the axes of a mesh ask for {} devices, {} are given", count, devices.size()));
  }
  CAIRN_TRY(check_devices(devices));
  auto state = std::make_shared<State>();
  std::size_t stride = count;
  for (const MeshAxis& axis : axes) {
    stride /= static_cast<std::size_t>(axis.size);
    state->strides.push_back(stride);
  }
  state->axes = std::move(axes);
  state->devices = std::move(devices);
  return Mesh(std::move(state));
}

Result<Mesh> Mesh::over_ranks(std::vector<MeshAxis> axes, int ranks) {
  CAIRN_TRY_ASSIGN(const std::size_t count, count_devices(axes));
  if (ranks < 1 || count % static_cast<std::size_t>(ranks) != 0) {
    return refuse("mesh/rank-count",
                  fmt::format("{} devices do not divide into {} ranks", count, ranks));
  }
  const int each = static_cast<int>(count) / ranks;
  std::vector<Device> devices;
  devices.reserve(count);
  for (int id = 0; id < static_cast<int>(count); ++id) devices.push_back({id, id / each});
  return make(std::move(axes), std::move(devices));
}

const std::vector<MeshAxis>& Mesh::axes() const { return state_->axes; }
const std::vector<Device>& Mesh::devices() const { return state_->devices; }

std::optional<std::size_t> Mesh::find_axis(std::string_view name) const {
  for (std::size_t i = 0; i < state_->axes.size(); ++i) {
    if (state_->axes[i].name == name) return i;
  }
  return std::nullopt;
}

Index Mesh::coordinate(std::size_t position, std::size_t axis) const {
  return static_cast<Index>(state_->coordinate(position, axis));
}

std::vector<std::size_t> Mesh::positions_of(int rank) const {
  std::vector<std::size_t> positions;
  for (const DeviceGroups::Member& member : groups(~AxisSet{0}).of_rank(rank)) {
    positions.push_back(member.position);
  }
  return positions;
}

const DeviceGroups& Mesh::groups(AxisSet axes) const {
  AxisSet set = 0;
  for (std::size_t i = 0; i < state_->axes.size(); ++i) {
    if (state_->axes[i].size > 1) set |= axes & AxisSet{1} << i;
  }
  const MutexLock lock(state_->mutex);
  std::unique_ptr<const DeviceGroups>& groups = state_->groups[set];
  if (groups == nullptr) groups = std::make_unique<const DeviceGroups>(state_->make_groups(set));
  return *groups;
}

bool Mesh::operator==(const Mesh& other) const {
  return state_ == other.state_ || (axes() == other.axes() && devices() == other.devices());
}

}  // namespace cairn
