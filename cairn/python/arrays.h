// SPDX-License-Identifier: Apache-2.0
// NumPy arrays and Cairn's, over the same memory.
#pragma once

#include <cstdint>
#include <optional>

#include <nanobind/nanobind.h>

#include "cairn/array/array.h"

namespace cairn::python {

namespace nb = nanobind;

/// What a numpy.dtype is here; nothing for objects, texts, dates and records.
std::optional<DType> dtype_of(const nb::handle& dtype);
/// From whatever names a type: "bfloat16", numpy.float32, jax.numpy.bfloat16. Nothing for None.
/// Throws `invalid_argument` (python/dtype).
std::optional<DType> parse_dtype_argument(const nb::object& dtype);

/// Where elements lie: the address of the first, and steps in bytes.
struct Layout {
  Shape shape;
  Strides strides;
  std::uintptr_t first = 0;
};
/// Memory that `owner` keeps. `lend`: nobody will change it.
Array share_memory(const nb::handle& owner, DType dtype, const Layout& layout, bool lend);

/// The memory of a numpy.ndarray of native byte order. `lend`: nobody will change it.
Array share_numpy(const nb::handle& array, DType dtype, bool lend);
/// A numpy.ndarray over the array's memory, read-only where that is immutable. Throws
/// `unimplemented` (python/no-ml-dtypes) for types that NumPy does not have by itself; or, if it is
/// for others, who may know them, gives bytes of the same size (NumPy's void).
nb::object to_numpy(const Array& array, bool for_others = false);

}  // namespace cairn::python
