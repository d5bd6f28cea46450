// SPDX-License-Identifier: Apache-2.0
// The header of NumPy's .npy format, version 1.0 (2.0 where it is long).
#pragma once

#include <string>

#include "cairn/array/array.h"

namespace cairn::cli {

/// Types that NumPy does not have (bfloat16, float8, int4, ...) are written as raw bytes ("<V2",
/// "|V1"), as NumPy itself does with ml_dtypes.
std::string npy_header(DType dtype, const Shape& shape);

}  // namespace cairn::cli
