// SPDX-License-Identifier: Apache-2.0
// A save by several ranks. In the foreground they agree on the attempt, by one broadcast and one
// gather; then each writes its part, and they meet in the attempt (commit/attempt_rank.h).
#pragma once

#include <string>
#include <vector>

#include "cairn/checkpoint/save/save_prepared.h"

namespace cairn::inline checkpoint {

/// `prepared` may be an error of this rank: the others hear of it. REQUIRES: runtime.ranks() > 1.
Result<SaveReport> save_together(Result<std::vector<PreparedTree>> prepared,
                                 const std::string& path, const SaveOptions& options,
                                 Runtime& runtime);

}  // namespace cairn::inline checkpoint
