// SPDX-License-Identifier: Apache-2.0
// Damage that a load found in a checkpoint of a run, noted in it as `.cairn-damage`: listings then
// know it without reading the data, and retention, in any process, does not count the checkpoint as
// good. A later save into the checkpoint voids the note.
#pragma once

#include <string>

#include "cairn/commit/destination.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// About the state that is there now. Does nothing without a record: such checkpoints are never
/// removed.
Result<void> note_damage(const std::string& path, const std::string& why, Runtime& runtime);

/// The sentence; empty: there is no note about this state.
std::string find_damage(Destination& place, const Snapshot& now);

}  // namespace cairn
