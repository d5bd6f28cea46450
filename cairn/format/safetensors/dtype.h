// SPDX-License-Identifier: Apache-2.0
// The element types of safetensors: their names in a header and their place in a file.
#pragma once

#include <optional>
#include <string_view>

#include "cairn/array/dtype.h"
#include "cairn/base/result.h"

namespace cairn::format::safetensors {

/// "BF16", or `invalid_argument` (safetensors/dtype-unsupported) with what to do instead.
Result<std::string_view> dtype_string(DType dtype);

/// The inverse; nothing for a name that is not one.
std::optional<DType> parse_dtype_string(std::string_view text);

/// Rank of the type in the order of the safetensors library, which writes tensors from the highest
/// to the lowest; -1 for a type that safetensors lacks.
int dtype_place(DType dtype);

/// Elements share bytes in the file (F4, F6).
inline bool is_packed(DType dtype) { return bit_width(dtype) % 8 != 0; }

}  // namespace cairn::format::safetensors
