// SPDX-License-Identifier: Apache-2.0
// Draws which rank reads which chunk of a leaf, as text; `plan_svg.h` draws SVG.
#pragma once

#include <string>
#include <vector>

#include "cairn/inspect/leaf_readers.h"

namespace cairn::cli {

/// Projection of a leaf onto two of its dimensions: a cell has the readers of all chunks behind it.
/// Split dimensions come first, then long ones.
struct Drawing {
  struct Axis {
    std::string label;  ///< "dimension 1"; empty where the leaf has none to show
    Index size = 1;     ///< elements
    Index step = 1;     ///< elements in a cell
    Index cells = 1;
  };
  /// What a rank holds, in elements.
  struct Part {
    Index top = 0;
    Index bottom = 0;
    Index left = 0;
    Index right = 0;
    std::vector<int> ranks = {};
  };

  std::string title;
  std::string about;
  int ranks = 1;
  Axis rows;
  Axis columns;
  std::vector<std::vector<int>> readers;  ///< of each cell, row by row
  std::vector<Part> held;                 ///< by place, each once

  const std::vector<int>& readers_at(Index row, Index column) const {
    return readers[static_cast<std::size_t>(row * columns.cells + column)];
  }
};

Drawing make_drawing(const PlacedArray& array, const LeafReaders& leaf, int ranks);

/// "0", "0,1", "0-3,7"; "*" for all of several ranks, "-" for none.
std::string rank_list(const std::vector<int>& some, int ranks);

/// A table with the readers of each cell; a sentence if it would not fit a page.
std::vector<std::string> draw_text(const Drawing& drawing);

}  // namespace cairn::cli
