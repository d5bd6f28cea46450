// SPDX-License-Identifier: Apache-2.0
// The member `compressor` of a `.zarray`.
#pragma once

#include "cairn/base/json.h"

namespace cairn::format::zarr2 {

/// Replaces levels that zarr-python writes and TensorStore refuses by their meaning: -1 is the
/// default level of zlib, and zstd clamps a level outside its range. Other members stay as they
/// are.
Json plain_levels(Json compressor);

}  // namespace cairn::format::zarr2
