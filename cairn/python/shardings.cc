// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/shardings.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/failure.h"
#include "cairn/sharding/named_sharding.h"

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

Sharding on_mesh(const Mesh& mesh, std::vector<PartitionSpec::Entry> spec) {
  return value_of(NamedSharding::make(mesh, PartitionSpec(std::move(spec))));
}

Sharding of_boxes(const Shape& shape, const std::vector<std::pair<Shape, Shape>>& boxes,
                  const Devices& devices) {
  const std::vector<Device> all = devices_of(devices);
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < all.size(); ++i)
    placements.push_back({Box{boxes.at(i).first, boxes.at(i).second}, all[i]});
  return value_of(Sharding::of_boxes(shape, std::move(placements)));
}

DType known(const std::string& dtype) {
  return *parse_dtype_argument(nb::str(dtype.data(), dtype.size()));
}

}  // namespace

ShardedArray share_shards(const std::string& dtype, const Shape& shape, const Sharding& sharding,
                          const nb::handle& shards) {
  const DType type = known(dtype);
  std::vector<Shard> held;
  for (const nb::handle shard : shards) {
    held.push_back({nb::cast<std::size_t>(shard[0]),
                    share_numpy(nb::object(shard[1]), type, nb::cast<bool>(shard[2]))});
  }
  return value_of(ShardedArray::make(type, shape, sharding, std::move(held)));
}

ShardedArray outline(const std::string& dtype, const Shape& shape, const Sharding& sharding) {
  return value_of(ShardedArray::make(known(dtype), shape, sharding, {}));
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
      .def_static("on_mesh", &on_mesh)
      .def_static("of_boxes", &of_boxes);
}

}  // namespace cairn::python
