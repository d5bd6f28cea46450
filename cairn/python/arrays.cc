// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/arrays.h"

#include <cstdint>
#include <string>
#include <utility>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/python/failure.h"

namespace cairn::python {

namespace {

/// Where the elements of an array lie around the first of them, in bytes.
struct Extent {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

Extent extent_of(const Shape& shape, const Strides& strides, std::size_t item) {
  Extent extent{0, static_cast<std::int64_t>(item)};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return {};
    const std::int64_t reach = (shape[i] - 1) * strides[i];
    (reach < 0 ? extent.before : extent.after) += reach < 0 ? -reach : reach;
  }
  return extent;
}

Buffer memory_of(const nb::handle& array, std::byte* first, std::size_t bytes, bool lend) {
  auto owner = keep(nb::borrow(array));
  if (lend) return Buffer::lend({first, bytes}, std::move(owner));
  return Buffer::borrow({first, bytes}, std::move(owner));
}

nb::object bytes_in_numpy(const Array& array) {
  auto kept = std::make_unique<Array>(array);
  const auto size = static_cast<std::size_t>(array.nbytes());
  const bool immutable = array.buffer().immutable();
  std::byte* const first = immutable ? const_cast<std::byte*>(array.data()) : kept->mutable_data();
  const nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<Array*>(p); });
  if (immutable) {
    return nb::cast(nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(first, {size}, owner));
  }
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(first, {size}, owner));
}

}  // namespace

std::optional<DType> dtype_of(const nb::handle& dtype) {
  return parse_dtype(nb::cast<std::string>(dtype.attr("name")));
}

std::optional<DType> parse_dtype_argument(const nb::object& dtype) {
  if (dtype.is_none()) return std::nullopt;
  const auto name =
      nb::cast<std::string>(nb::module_::import_("cairn._dtypes").attr("name_of")(dtype));
  if (const auto known = parse_dtype(name)) return known;
  throw Failure(Error(Code::kInvalidArgument, "python/dtype",
                      "'" + name + "' is not a numeric type that can be stored"));
}

Array share_memory(const nb::handle& owner, DType dtype, const Layout& layout, bool lend) {
  const auto [before, after] = extent_of(layout.shape, layout.strides, item_size(dtype));
  auto* const first = reinterpret_cast<std::byte*>(layout.first);
  const Buffer memory =
      memory_of(owner, first - before, static_cast<std::size_t>(before + after), lend);
  return value_of(Array::wrap_strided(dtype, layout.shape, layout.strides, memory,
                                      static_cast<std::size_t>(before)));
}

Array share_numpy(const nb::handle& array, DType dtype, bool lend) {
  const nb::object interface = array.attr("__array_interface__");
  const auto shape = nb::cast<Shape>(interface["shape"]);
  const nb::object given = interface["strides"];
  const Strides strides =
      given.is_none() ? dense_strides(shape, item_size(dtype)) : nb::cast<Strides>(given);
  const auto first = nb::cast<std::uintptr_t>(interface["data"][0]);
  return share_memory(array, dtype, {shape, strides, first}, lend);
}

nb::object to_numpy(const Array& array, bool for_others) {
  const nb::object types = nb::module_::import_("cairn._dtypes");
  const std::string name(dtype_name(array.dtype()));
  const nb::object dtype = for_others ? types.attr("stand_in")(name, item_size(array.dtype()))
                                      : types.attr("numpy_dtype")(name);
  const nb::object shape = nb::tuple(nb::cast(array.shape()));
  if (array.elements() == 0) return nb::module_::import_("numpy").attr("empty")(shape, dtype);
  const Array dense = value_of(array.to_dense());
  return bytes_in_numpy(dense).attr("view")(dtype).attr("reshape")(shape);
}

}  // namespace cairn::python
