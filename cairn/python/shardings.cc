// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/shardings.h"

#include <map>
#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/failure.h"
#include "cairn/sharding/named_sharding.h"
#include "cairn/tree/sharding_tree.h"

namespace cairn::python {

namespace {

using Axes = std::vector<std::pair<std::string, Index>>;
/// Id and rank.
using Devices = std::vector<std::pair<int, int>>;

std::vector<Device> devices_of(const Devices& given) {
  std::vector<Device> devices;
  for (const auto& [id, rank] : given) devices.push_back({.id = id, .rank = rank});
  return devices;
}

Mesh make_mesh(const Axes& given, const Devices& devices) {
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : given) axes.push_back({name, size});
  return value_of(Mesh::make(std::move(axes), devices_of(devices)));
}

Sharding on_mesh(const Mesh& mesh, SpecEntries spec) {
  return value_of(NamedSharding::make(mesh, PartitionSpec(std::move(spec))));
}

Sharding of_boxes(const Shape& shape, const std::vector<std::pair<Shape, Shape>>& boxes,
                  const Devices& devices) {
  const std::vector<Device> all = devices_of(devices);
  std::vector<Placement> placements;
  placements.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    placements.push_back({Box{boxes.at(i).first, boxes.at(i).second}, all[i]});
  return value_of(Sharding::of_boxes(shape, std::move(placements)));
}

/// None: not by axes of a mesh.
std::optional<SpecEntries> spec_of(const Sharding& sharding) {
  const NamedSharding* named = sharding.named();
  return named != nullptr ? std::optional(named->spec().entries()) : std::nullopt;
}

using Parts = std::vector<std::string>;

/// Of each array the spec to store with it, or None; by the parts of their key paths.
std::vector<std::pair<Parts, SpecEntries>> wished(
    const std::vector<std::pair<Parts, Shape>>& arrays,
    const std::vector<std::pair<Parts, std::optional<SpecEntries>>>& given,
    const std::optional<SpecRules>& rules, const Mesh* mesh) {
  std::map<KeyPath, Shape> shapes;
  for (const auto& [parts, shape] : arrays) shapes.emplace(KeyPath(parts), shape);
  SpecWishes wishes;
  for (const auto& [parts, spec] : given)
    wishes.emplace(KeyPath(parts), spec ? std::optional(PartitionSpec(*spec)) : std::nullopt);
  const auto known = rules ? std::optional(rules_of(*rules)) : std::nullopt;
  std::vector<std::pair<Parts, SpecEntries>> specs;
  for (const auto& [path, spec] :
       value_of(wished_specs(shapes, wishes, known ? &*known : nullptr, mesh)))
    specs.emplace_back(path.parts(), spec.entries());
  return specs;
}

}  // namespace

PartitionRules rules_of(SpecRules given) {
  std::vector<PartitionRule> rules;
  for (auto& [pattern, spec] : given)
    rules.push_back({std::move(pattern), PartitionSpec(std::move(spec))});
  return value_of(PartitionRules::make(std::move(rules)));
}

ShardedArray share_shards(const std::string& dtype, const Shape& shape, const Sharding& sharding,
                          const nb::handle& shards) {
  const DType type = known_dtype(dtype);
  std::vector<Shard> held;
  for (const nb::handle shard : shards) {
    held.push_back({nb::cast<std::size_t>(shard[0]),
                    share_numpy(nb::object(shard[1]), type, nb::cast<bool>(shard[2]))});
  }
  return value_of(ShardedArray::make(type, shape, sharding, std::move(held)));
}

ShardedArray outline(DType dtype, const Shape& shape, const Sharding& sharding) {
  return value_of(ShardedArray::make(dtype, shape, sharding, {}));
}

DType known_dtype(const std::string& name) {
  return *parse_dtype_argument(nb::str(name.data(), name.size()));
}

nb::list shards_in_numpy(const ShardedArray& array) {
  nb::list shards;
  for (const Shard& shard : array.shards())
    shards.append(nb::make_tuple(shard.position, to_numpy(shard.data, true)));
  return shards;
}

void bind_shardings(nb::module_& module) {
  nb::class_<Mesh>(module, "Mesh")
      .def("__init__", [](Mesh* self, const Axes& axes, const Devices& devices) {
        new (self) Mesh(make_mesh(axes, devices));
      });
  nb::class_<Sharding>(module, "Sharding")
      .def(nb::init<>())
      .def("__eq__", [](const Sharding& one, const Sharding& other) { return one == other; })
      .def_prop_ro("spec", &spec_of)
      .def_static("on_mesh", &on_mesh)
      .def_static("of_boxes", &of_boxes);
  module.def("wished_specs", &wished, nb::arg("arrays"), nb::kw_only(), nb::arg("given"),
             nb::arg("rules").none(), nb::arg("mesh").none());
}

}  // namespace cairn::python
