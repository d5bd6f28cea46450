// SPDX-License-Identifier: Apache-2.0
// What a save needs beside its destination's lock: permission from the run's owner.
#pragma once

#include <functional>
#include <memory>

#include "cairn/base/result.h"

namespace cairn {

/// Called before the destination's lock is taken for the decision; what it returns is held until
/// everything is in place. Its error refuses the save, and nothing visible changes; `cancelled`
/// says that the caller gave the save up and knows it. Empty: nobody is asked. Called from the
/// thread that commits.
using CommitGuard = std::function<Result<std::shared_ptr<void>>()>;

/// What the guard returns; nothing for an empty one.
inline Result<std::shared_ptr<void>> take_guard(const CommitGuard& guard) {
  return guard ? guard() : Result<std::shared_ptr<void>>(std::shared_ptr<void>());
}

}  // namespace cairn
