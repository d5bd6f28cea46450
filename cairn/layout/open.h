// SPDX-License-Identifier: Apache-2.0
// Which layouts there are: one row each in open.cc, asked in order.
#pragma once

#include "cairn/layout/checkpoint.h"
#include "cairn/layout/directory_view.h"

namespace cairn {

/// Asks each layout; the first that answers wins. `failed_precondition`
/// (checkpoint/not-a-checkpoint), or what strangers.h recognises.
Result<Checkpoint> open_layout(const DirectoryView& view, Runtime& runtime);

}  // namespace cairn
