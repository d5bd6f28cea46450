// SPDX-License-Identifier: Apache-2.0
// Size and checksum of an array.
#pragma once

#include <string>

#include "cairn/array/array.h"

namespace cairn {

/// Bytes that carry information: types smaller than a byte count as if packed. `invalid_argument`
/// as for dense_nbytes().
Result<std::uint64_t> estimate_array_nbytes(DType dtype, const Shape& shape);

/// SHA-256 of the elements in C order, as hex. `resource_exhausted` if the array is not dense and a
/// dense copy does not fit into memory.
Result<std::string> compute_checksum(const Array& array);

}  // namespace cairn
