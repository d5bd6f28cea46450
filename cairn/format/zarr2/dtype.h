// SPDX-License-Identifier: Apache-2.0
// The member `dtype` of a `.zarray`, both ways.
#pragma once

#include <string>

#include "cairn/array/dtype.h"
#include "cairn/base/json.h"

namespace cairn::format::zarr2 {

struct StoredType {
  DType dtype = DType::kFloat32;
  bool big_endian = false;  ///< never for types of one byte
};

/// `unimplemented` for what zarr has and Cairn does not (zarr2/dtype-structured, -void, -bytes,
/// -unicode, -datetime, -object, -unsupported); `corrupt` for what nobody writes
/// (zarr2/dtype-type, -byte-order, -size, -unknown).
Result<StoredType> parse_stored_type(const Json& value);

/// The inverse. `invalid_argument`: zarr2/dtype-unsupported, and zarr2/not-representable for a big
/// endian type that zarr v2 knows by name only.
Result<std::string> dump_stored_type(const StoredType& type);

/// zarr2's name of a type ("<f4", "bfloat16"), or `invalid_argument` (zarr2/dtype-unsupported).
Result<std::string> dtype_string(DType dtype);

}  // namespace cairn::format::zarr2
