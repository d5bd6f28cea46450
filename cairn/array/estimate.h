// SPDX-License-Identifier: Apache-2.0
// How large arrays are, and how to split one that is too large.
#pragma once

#include <vector>

#include "cairn/array/array.h"

namespace cairn {

/// Bytes that carry information: types smaller than a byte count as if packed. `invalid_argument`
/// as for dense_nbytes().
Result<std::uint64_t> estimate_array_nbytes(DType dtype, const Shape& shape);

/// Splits along the first dimension into as many equal views as `memory_limit` requires; the last
/// one also has the remainder. One view if the array fits or cannot be split that far. A limit of 0
/// counts as 1.
std::vector<Array> chunk_tensor_by_memory(const Array& array, std::uint64_t memory_limit);

/// SHA-256 of the elements in C order, as hex. `resource_exhausted` if the array is not dense and a
/// dense copy does not fit into memory.
Result<std::string> compute_checksum(const Array& array);

}  // namespace cairn
