// SPDX-License-Identifier: Apache-2.0
// Which rank would read which chunk of one array: what a drawing of a load shows.
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

  /// Where `parts` is false the cells are the stored chunks. An array that lies in one piece (a
  /// safetensors tensor) is read by ranges: its cells are then the parts that ranks hold.
  bool parts = false;
  Shape cell_shape;
  Shape grid;                             ///< cells along each dimension
  std::vector<std::vector<int>> readers;  ///< of each cell in C order, ascending
  std::vector<Part> held;                 ///< each different box once

  /// Position in the grid of a cell. REQUIRES: cell < readers.size().
  Shape position(std::size_t cell) const;
};

/// More cells, or more pairs of cell and rank, are not worked out.
constexpr std::uint64_t kMaxReaderCells = std::uint64_t{1} << 20;

/// `invalid_argument` (plan/too-many-cells), with the leaf.
Result<LeafReaders> leaf_readers(const PlacedArray& array);

/// The largest array that is split over ranks or devices, else the largest with any element; null
/// if there is none.
const PlacedArray* most_telling_array(const PlannedLoad& load);

}  // namespace cairn
