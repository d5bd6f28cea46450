// SPDX-License-Identifier: Apache-2.0
// Permission from the run's owner, which a save needs besides its destination's lock.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "cairn/base/result.h"

namespace cairn {

/// Called by the committing thread before it takes the destination's lock; the returned object is
/// held until everything is in place. An error refuses the save, and nothing visible changes;
/// `cancelled` means that the caller itself gave the save up. Empty: always permitted.
using CommitGuard = std::function<Result<std::shared_ptr<void>>()>;

/// What the guard returns; nothing for an empty one.
inline Result<std::shared_ptr<void>> take_guard(const CommitGuard& guard) {
  return guard ? guard() : Result<std::shared_ptr<void>>(std::shared_ptr<void>());
}

/// Asks `first`, then `second`, and holds what both return.
inline CommitGuard both_guards(CommitGuard first, CommitGuard second) {
  return [first = std::move(first), second = std::move(second)]() -> Result<std::shared_ptr<void>> {
    using Held = std::pair<std::shared_ptr<void>, std::shared_ptr<void>>;
    CAIRN_TRY_ASSIGN(auto one, take_guard(first));
    CAIRN_TRY_ASSIGN(auto other, take_guard(second));
    return std::make_shared<Held>(std::move(one), std::move(other));
  };
}

}  // namespace cairn
