// SPDX-License-Identifier: Apache-2.0
// The owner of a run (run_owner.h), by the run's path or URL.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cairn/commit/run_owner.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// RunDirectory::take().
Result<std::shared_ptr<RunOwner>> take_run(const std::string& base, const OwnershipOptions& options,
                                           Runtime& runtime);
/// RunDirectory::find_owner().
Result<std::optional<SeenOwner>> find_owner(const std::string& base, Runtime& runtime);

}  // namespace cairn
