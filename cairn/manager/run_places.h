// SPDX-License-Identifier: Apache-2.0
// Which paths are of a run.
#pragma once

#include <string>

#include "cairn/base/result.h"

namespace cairn {

/// Where `destination` leads: a name in the run directory, or an absolute path, with links and ".."
/// in it or not, or a URL. What is in the run directory begins with `base` as it is written; what
/// leads elsewhere, or to the run directory itself, stays as it is but for its dots.
/// `invalid_argument` (checkpointer/destination) for a relative path that leaves the run directory.
Result<std::string> place_of(const std::string& base, const std::string& destination);

/// Does the path lead into the run directory, however both are written?
bool leads_into_run(const std::string& base, const std::string& path);

/// Of what place_of() gives, or a step.
bool is_of_run(const std::string& base, const std::string& path);

}  // namespace cairn
