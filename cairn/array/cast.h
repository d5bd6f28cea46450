// SPDX-License-Identifier: Apache-2.0
// Conversion between float types, as ml_dtypes does it.
#pragma once

#include <optional>

#include "cairn/array/array.h"

namespace cairn {

/// Casts between any two float types (and between the two complex types), whatever the thread's
/// rounding mode: rounds once, to nearest even. NaN stays NaN and keeps its sign if the target type
/// has both; overflow becomes infinity or NaN or saturates, as in ml_dtypes. False for other types.
bool can_cast(DType from, DType to);

/// Dense elements. REQUIRES: can_cast(); `from` holds n elements of its type and `to` n of its own;
/// no overlap unless the types are equal.
void cast_elements(DType from_type, ByteSpan from, DType to_type, MutableByteSpan to);

/// A dense array of the other type, or the same array if it has that type already.
/// `invalid_argument` (cast/unsupported).
Result<Array> cast_array(const Array& array, DType to);

/// What `dtype=` means to a load or a save: float16, bfloat16, float32 and float64 become `to`; all
/// other arrays stay as they are. Without `to` nothing changes. `invalid_argument`
/// (cast/unsupported) if `to` is no float.
Result<Array> put_dtype(const Array& array, std::optional<DType> to);

/// One element as a double (integers beyond 2^53 rounded, complex by its real part).
double element_as_double(DType dtype, const std::byte* element);
/// One element as text: shortest that reads back, "true", "1.5", "nan", "(1+2j)".
std::string element_as_text(DType dtype, const std::byte* element);

}  // namespace cairn
