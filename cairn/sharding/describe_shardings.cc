// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/describe_shardings.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/sha256.h"

namespace cairn {

std::string ShardingDescriber::describe(const Sharding& sharding, const Shape& shape) {
  if (const NamedSharding* named = sharding.named())
    return fmt::format("{} on mesh {}", named->spec().to_string(), number_of(named->mesh()));
  std::string text;
  for (std::size_t at = 0; at < sharding.device_count(); ++at) {
    const Device device = sharding.device(at);
    text += fmt::format("{}@{}.{} ", sharding.box(at, shape).to_string(), device.rank, device.id);
  }
  return text;
}

std::size_t ShardingDescriber::number_of(const Mesh& mesh) {
  const auto known = std::ranges::find(meshes_, mesh);
  if (known != meshes_.end()) return static_cast<std::size_t>(known - meshes_.begin());
  meshes_.push_back(mesh);
  for (const MeshAxis& axis : mesh.axes()) text_ += fmt::format("{}={} ", axis.name, axis.size);
  for (const Device& device : mesh.devices())
    text_ += fmt::format("{}.{} ", device.rank, device.id);
  text_ += '\n';
  return meshes_.size() - 1;
}

std::string sharding_fingerprint(const Sharding& sharding, const Shape& shape) {
  ShardingDescriber describer;
  const std::string described = describer.describe(sharding, shape);
  return sha256_hex(as_bytes(described + "\n" + describer.meshes()));
}

}  // namespace cairn
