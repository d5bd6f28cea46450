// SPDX-License-Identifier: Apache-2.0
// Loads trees, parts of trees and slices of leaves. `save/save.h` is the other direction.
#pragma once

#include <string>

#include "cairn/load/load_options.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Opens and loads; starts again if the checkpoint is replaced meanwhile. With a coordinator every
/// rank makes the same call and gets its own boxes, all of one state of the checkpoint. Rank 0
/// reads small leaves that are the same on all ranks, and broadcasts them. If one rank fails, all
/// get its error (load/rank-failed). The second form involves this process alone. Errors of
/// open_checkpoint(), prefix(), read_boxes(); `not_found` (load/key-missing), `failed_precondition`
/// (load/missing-array, load/shape-mismatch, load/dtype-mismatch: each lists every leaf).
Result<Loaded> load(const std::string& path, const LoadOptions& options, Runtime& runtime);
Result<Loaded> load(const Checkpoint& checkpoint, const LoadOptions& options, Runtime& runtime);

}  // namespace cairn
