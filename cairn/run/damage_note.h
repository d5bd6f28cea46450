// SPDX-License-Identifier: Apache-2.0
// What a load found wrong with a checkpoint of a run, kept in it as `.cairn-damage`, so that a
// listing need not check the sums again. Retention, in any process, then does not count the
// checkpoint as a good one. A later save into the checkpoint makes the note void.
#pragma once

#include <string>

#include "cairn/commit/destination.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// About what lies there now. A checkpoint without a record gets no note: nothing removes it.
Result<void> note_damage(const std::string& path, const std::string& why, Runtime& runtime);

/// The sentence; empty: there is no note about this state.
std::string find_damage(Destination& place, const Snapshot& now);

}  // namespace cairn
