// SPDX-License-Identifier: Apache-2.0
// Which rank would read which chunk of one array; the data of a drawing.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/inspect/planned_load.h"

namespace cairn {

/// The array cut into a grid of cells, and who reads each.
struct LeafReaders {
  /// Box of the array and the ranks that hold it.
  struct Part {
    Box box;
    Ranks ranks;
  };

  /// If `parts` is false, the cells are the stored chunks. A contiguous array (a safetensors
  /// tensor) is read by ranges: its cells are then the parts that ranks hold.
  bool parts = false;
  Shape cell_shape;
  Shape grid;                             ///< cells along each dimension
  std::vector<std::vector<int>> readers;  ///< of each cell in C order, ascending
  std::vector<Part> held;                 ///< each different box once

  /// Position in the grid of a cell. REQUIRES: cell < readers.size().
  Shape position(std::size_t cell) const;
};

/// Limits on cells, and on pairs of cell and rank.
constexpr std::uint64_t kMaxReaderCells = std::uint64_t{1} << 20;

/// `invalid_argument` (plan/too-many-cells), with the leaf.
Result<LeafReaders> leaf_readers(const PlacedArray& array);

/// The largest array that is split over ranks or devices, else the largest with any element; null
/// if there is none.
const PlacedArray* most_telling_array(const PlannedLoad& load);

}  // namespace cairn
