// SPDX-License-Identifier: Apache-2.0
// The layout of JAX and of the reference system: an array at key path a.b is the directory
// <prefix>/a/b with `.zarray` and one object a chunk; <prefix> and <prefix>/a have `.zgroup`.
#pragma once

#include <memory>
#include <vector>

#include "cairn/save/array_writer.h"

namespace cairn {

Result<std::unique_ptr<ArrayWriter>> make_zarr2_writer(std::vector<PlannedArray> arrays,
                                                       const ArrayWriterOptions& options);

}  // namespace cairn
