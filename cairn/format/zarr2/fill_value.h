// SPDX-License-Identifier: Apache-2.0
// The member `fill_value` of a `.zarray`, both ways. Null is the caller's: it means zeros.
#pragma once

#include <string>

#include "cairn/array/dtype.h"
#include "cairn/base/json.h"

namespace cairn::format::zarr2 {

/// Bytes of one element, little endian, unused high bits zero. `corrupt`: zarr2/fill-type (not a
/// spelling of this type's values), zarr2/fill-fraction (1.5 for an integer), zarr2/fill-range (no
/// such value in this type), zarr2/fill-base64; `unimplemented`: zarr2/fill-ambiguous.
Result<std::string> parse_fill_value(DType dtype, const Json& value);

/// The inverse. `invalid_argument` (zarr2/not-representable) for an element that no JSON value
/// reads back as: a NaN with a payload, high bits that are not zero.
Result<Json> dump_fill_value(DType dtype, const std::string& fill);

}  // namespace cairn::format::zarr2
