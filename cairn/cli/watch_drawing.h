// SPDX-License-Identifier: Apache-2.0
// Lines that `cairn watch` prints about a run at one moment.
#pragma once

#include <string>
#include <vector>

#include "cairn/cli/terminal.h"
#include "cairn/run/run_status.h"

namespace cairn::cli {

/// `ranks`: how many ranks are shown of each save, the slowest first; `terminal`: bars may use
/// characters beyond ASCII.
struct DrawingRoom {
  std::size_t ranks = 16;
  bool terminal = false;
};
std::vector<Styled> draw_run(const RunStatus& status, const DrawingRoom& room);

/// The same, made to fit: lines are cut at the edge, and fewer ranks are shown.
std::vector<Styled> draw_run_on(const RunStatus& status, const Screen& screen);

}  // namespace cairn::cli
