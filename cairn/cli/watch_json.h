// SPDX-License-Identifier: Apache-2.0
// What `cairn watch` says of a run at one moment, as JSON.
#pragma once

#include <optional>
#include <string>

#include "cairn/base/clock.h"
#include "cairn/base/json.h"
#include "cairn/run/run_status.h"

namespace cairn::cli {

/// Nothing if there is no time. Clocks of two hosts may differ a little: nothing lies in the
/// future.
std::optional<double> seconds_since(const std::string& timestamp, Clock::Wall now);

Json run_to_json(const RunStatus& status);

/// Differs from that of another look if anything happened in between; time alone is nothing.
std::string state_of(const RunStatus& status);

}  // namespace cairn::cli
