// SPDX-License-Identifier: Apache-2.0
// All layouts: one row each in open.cc, tried in order.
#pragma once

#include "cairn/layout/checkpoint.h"
#include "cairn/layout/directory_view.h"

namespace cairn {

/// Tries each layout; the first that recognises the directory wins. `failed_precondition`
/// (checkpoint/not-a-checkpoint), or the error of strangers.h.
Result<Checkpoint> open_layout(const DirectoryView& view, Runtime& runtime);

}  // namespace cairn
