// SPDX-License-Identifier: Apache-2.0
// What `cairn watch` says of a run at one moment, as lines and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cairn/cli/terminal.h"
#include "cairn/manager/run_status.h"

namespace cairn::cli {

/// `ranks` is how many are shown of each save at most, the slowest first; `terminal`: bars may be
/// other than ASCII.
struct DrawingRoom {
  std::size_t ranks = 16;
  bool terminal = false;
};
std::vector<Styled> draw_run(const RunStatus& status, const DrawingRoom& room);

/// The same so that it fits: each line is cut at the edge, and fewer ranks are shown.
std::vector<Styled> draw_run_on(const RunStatus& status, const Screen& screen);

/// Nothing if there is no time. Clocks of two hosts may differ a little: nothing lies in the
/// future.
std::optional<double> seconds_since(const std::string& timestamp, Clock::Wall now);

Json run_to_json(const RunStatus& status);

/// Differs from that of another look if anything happened in between; time alone is nothing.
std::string state_of(const RunStatus& status);

}  // namespace cairn::cli
