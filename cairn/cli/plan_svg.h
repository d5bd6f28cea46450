// SPDX-License-Identifier: Apache-2.0
// The picture of `cairn plan` as SVG.
#pragma once

#include <string>

#include "cairn/cli/plan_drawing.h"

namespace cairn::cli {

/// A whole document: cells in the colours of their readers, what ranks hold in outlines, a legend.
/// `invalid_argument`: plan/too-large-to-draw, plan/nothing-to-draw (no elements).
Result<std::string> draw_svg(const Drawing& drawing);

}  // namespace cairn::cli
