// SPDX-License-Identifier: Apache-2.0
// Arrays of a checkpoint as the source of another save.
#pragma once

#include <cstddef>
#include <memory>

#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/runtime.h"
#include "cairn/save/leaf_source.h"

namespace cairn {

/// An array of another checkpoint, read piece by piece and cast to `dtype`. `prefix` and `runtime`
/// must outlive it. `runtime` must not be the one that writes: a holder of a memory budget must not
/// wait for the same budget again.
std::shared_ptr<const LeafSource> stored_source(const OpenedPrefix& prefix, std::size_t array,
                                                DType dtype, Runtime& runtime);

}  // namespace cairn
