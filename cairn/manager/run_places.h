// SPDX-License-Identifier: Apache-2.0
// Which paths are of a run.
#pragma once

#include <string>

#include "cairn/base/result.h"

namespace cairn {

/// The path that `destination` means: a name in the run directory, an absolute path (links and ".."
/// allowed), or a URL. Paths in the run directory are returned with `base` in front, as it is
/// written; others unchanged, except that dots are resolved.
/// `invalid_argument` (checkpointer/destination) for a relative path that leaves the run directory.
Result<std::string> place_of(const std::string& base, const std::string& destination);

/// Is the path in the run directory? Links and dots in either are resolved.
bool leads_into_run(const std::string& base, const std::string& path);

/// The same for what place_of() returned; cheap.
bool is_of_run(const std::string& base, const std::string& path);

}  // namespace cairn
