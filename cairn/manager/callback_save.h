// SPDX-License-Identifier: Apache-2.0
// A save made by the user's callbacks. Whether they saved anything is seen from the files they
// leave.
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

/// On every rank: calls the callbacks and waits for the saves they began; all ranks get the error
/// of any. Then rank 0 writes the mark and returns true. If no file below the path changed, it
/// returns false and logs checkpointer/nothing-saved.
Result<bool> save_by_callbacks(const CallbackSave& save, AsyncCheckpointManager& manager);

}  // namespace cairn
