// SPDX-License-Identifier: Apache-2.0
// JSON that `cairn watch` prints about a run at one moment.
#pragma once

#include <optional>
#include <string>

#include "cairn/base/clock.h"
#include "cairn/base/json.h"
#include "cairn/run/run_status.h"

namespace cairn::cli {

/// nullopt if there is no time. Clocks of two hosts may differ a little, so a time in the future
/// counts as now.
std::optional<double> seconds_since(const std::string& timestamp, Clock::Wall now);

Json run_to_json(const RunStatus& status);

/// A value that changes if anything has happened between two looks; the passing of time alone does
/// not count.
std::string state_of(const RunStatus& status);

}  // namespace cairn::cli
