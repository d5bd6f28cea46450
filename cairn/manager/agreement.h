// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job decide together in the foreground, with the patience of a manager
// (AsyncManagerOptions::timeout).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/manager/async_manager.h"

namespace cairn::inline manager {

/// Fine if it is on every rank; else on every rank the error of the lowest one that has any, with
/// its number. Two messages where there are several ranks, none where there is one. `last`: what
/// rank 0 does in between, if all is fine so far; its error is everybody's too.
Result<void> agree(const Result<void>& mine, std::string_view phase,
                   const AsyncCheckpointManager& manager,
                   const std::function<Result<void>()>& last = {});

/// What every rank says, by rank, on rank 0; an empty list on the others. One message.
Result<std::vector<std::string>> tell(const std::string& mine, std::string_view phase,
                                      const AsyncCheckpointManager& manager);

/// What rank 0 says, on every rank; what the others say is not looked at. One message.
Result<std::string> hear(const Result<std::string>& said, std::string_view phase,
                         const AsyncCheckpointManager& manager);

}  // namespace cairn::inline manager
