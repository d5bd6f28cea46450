// SPDX-License-Identifier: Apache-2.0
// A save by several ranks. In the foreground they agree on the attempt, by one broadcast and one
// gather; then each writes its part, and they meet in the attempt (commit/attempt_rank.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/save/save_prepared.h"

namespace cairn {

/// `prepared` may be an error of this rank, which the others then get; `directory` is ignored in
/// this case. `runtime` must outlive it; only begin() uses its coordinator. REQUIRES:
/// runtime.ranks() > 1.
std::unique_ptr<SaveSteps> save_together(Result<std::vector<PreparedTree>> prepared,
                                         const Uri& directory, SaveOptions options,
                                         Runtime& runtime, SaveInternals internals);

}  // namespace cairn
