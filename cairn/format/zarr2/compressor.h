// SPDX-License-Identifier: Apache-2.0
// The member `compressor` of a `.zarray`.
#pragma once

#include "cairn/base/json.h"

namespace cairn::format::zarr2 {

/// Levels that zarr-python writes and TensorStore does not know, as the levels they stand for: -1
/// is zlib's default, and zstd takes one beyond its range for the nearest. Anything else stays as
/// it is.
Json plain_levels(Json compressor);

}  // namespace cairn::format::zarr2
