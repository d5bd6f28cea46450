// SPDX-License-Identifier: Apache-2.0
// How large arrays are, and how to split one that is too large.
#pragma once

#include <vector>

#include "cairn/array/array.h"

namespace cairn {

/// Bytes that carry information: types smaller than a byte count as if packed. `invalid_argument`
/// as for dense_nbytes().
Result<std::uint64_t> estimate_array_nbytes(DType dtype, const Shape& shape);

/// Views along the first dimension: as many equal ones as `memory_limit` asks for, the last one
/// with the remainder. One view of everything if it fits, or cannot be split into so many. A limit
/// of 0 counts as 1.
std::vector<Array> chunk_tensor_by_memory(const Array& array, std::uint64_t memory_limit);

/// SHA-256 of the elements in C order, as hex. `resource_exhausted` for an array that is not dense
/// and does not fit into memory once more.
Result<std::string> compute_checksum(const Array& array);

}  // namespace cairn
