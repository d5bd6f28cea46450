// SPDX-License-Identifier: Apache-2.0
// A save of a run that callbacks make themselves: whether they have saved anything is seen by the
// files that they leave.
#pragma once

#include <string>
#include <vector>

#include "cairn/manager/checkpointer_options.h"
#include "cairn/run/mark.h"

namespace cairn {

struct CallbackSave {
  std::string path;
  std::vector<CheckpointCallback> callbacks;
  const Mesh* mesh = nullptr;
  Mark mark;
  CommitGuard guard;  ///< of the mark
};

/// On every rank: calls the callbacks and waits for what they have begun; the error of one is
/// everybody's. Then rank 0 writes the mark. True on rank 0 if it has; false if no file below the
/// path has changed, which it says through the log (checkpointer/nothing-saved).
Result<bool> save_by_callbacks(const CallbackSave& save, AsyncCheckpointManager& manager);

}  // namespace cairn
