// SPDX-License-Identifier: Apache-2.0
// NumPy arrays and Cairn's, over the same memory.
#pragma once

#include <cstdint>
#include <optional>

#include <nanobind/nanobind.h>

#include "cairn/array/array.h"

namespace cairn::python {

namespace nb = nanobind;

/// Our type for a numpy.dtype; nullopt for objects, texts, dates and records.
std::optional<DType> dtype_of(const nb::handle& dtype);
/// From anything that names a type: "bfloat16", numpy.float32, jax.numpy.bfloat16. nullopt for
/// None. Throws `invalid_argument` (python/dtype).
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
/// A numpy.ndarray over the memory of the array, read-only if that is immutable. For types that
/// NumPy lacks without ml_dtypes: throws `unimplemented` (python/no-ml-dtypes), or, if the result
/// is for other code that may know them, returns bytes of the same size (void of NumPy).
nb::object to_numpy(const Array& array, bool for_others = false);

}  // namespace cairn::python
