// SPDX-License-Identifier: Apache-2.0
// What a load found wrong with a checkpoint of a run, kept in it as `.cairn-damage`: sums are not
// checked again each time that the run is listed. Retention of any process then counts it as no
// good one. A later save into the checkpoint makes the note void.
#pragma once

#include <string>

#include "cairn/commit/snapshot.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// About what lies there now. A checkpoint without a record gets no note: nothing removes it.
Result<void> note_damage(const std::string& path, const std::string& why, Runtime& runtime);

/// The sentence; empty: there is no note about this state.
std::string find_damage(const LocalPath& path, const Snapshot& now, Runtime& runtime);

}  // namespace cairn
