// SPDX-License-Identifier: Apache-2.0
// What `cairn watch` says of a run at one moment, as lines.
#pragma once

#include <string>
#include <vector>

#include "cairn/cli/terminal.h"
#include "cairn/run/run_status.h"

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

}  // namespace cairn::cli
