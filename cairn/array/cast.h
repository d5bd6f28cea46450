// SPDX-License-Identifier: Apache-2.0
// Conversion between float types, as ml_dtypes does it.
#pragma once

#include <optional>

#include "cairn/array/array.h"

namespace cairn {

/// Between any two float types (complex between the two complex ones), whatever the thread's
/// rounding mode: rounded once, to nearest even; NaN stays NaN with its sign, where the target has
/// them; overflow becomes infinity or NaN or saturates just as in ml_dtypes. False for others.
bool can_cast(DType from, DType to);

/// Dense elements. REQUIRES: can_cast; `from` holds n elements of its type, `to` n of its own; no
/// overlap unless the types are equal.
void cast_elements(DType from_type, ByteSpan from, DType to_type, MutableByteSpan to);

/// A dense array of the other type; the same array if the type is equal already. `invalid_argument`
/// (cast/unsupported).
Result<Array> cast_array(const Array& array, DType to);

/// What `dtype=` means to a load or a save: the usual floats (float16, bfloat16, float32, float64)
/// become `to`, all other arrays stay as they are, as does every array if there is no `to`.
/// `invalid_argument` (cast/unsupported) if `to` is no float.
Result<Array> put_dtype(const Array& array, std::optional<DType> to);

/// One element as a double (integers beyond 2^53 rounded, complex by its real part).
double element_as_double(DType dtype, const std::byte* element);
/// One element as text: shortest that reads back, "true", "1.5", "nan", "(1+2j)".
std::string element_as_text(DType dtype, const std::byte* element);

}  // namespace cairn
