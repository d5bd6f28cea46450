// SPDX-License-Identifier: Apache-2.0
// Arrays of any size, read piece by piece.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/load/load_plan.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Calls `read(array, box)`, which returns a Result, on all threads for each piece of each array
/// (PieceBoxes), and then `merge(array, found)` with its value, on this thread and in order. Pieces
/// that are read at the same time fit into the memory budget, unless a single piece exceeds it.
template <typename Read, typename Merge>
Result<void> fold_pieces(const std::vector<const format::StoredArray*>& arrays, Runtime& runtime,
                         const Read& read, const Merge& merge) {
  struct Piece {
    std::size_t array = 0;
    Box box;
    typename std::invoke_result_t<const Read&, std::size_t, const Box&>::value_type found;
  };
  // Two sides are compared, or one is widened; and what is found takes memory, too.
  constexpr std::uint64_t kForEachByte = 4;
  constexpr std::size_t kMostPieces = std::size_t{1} << 16;
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;
  const auto read_all = [&]() -> Result<void> {
    CAIRN_TRY(for_each_index(runtime.executor(), pieces.size(), [&](std::size_t n) -> Result<void> {
      CAIRN_TRY_ASSIGN(pieces[n].found, read(pieces[n].array, pieces[n].box));
      return {};
    }));
    for (const Piece& piece : pieces) merge(piece.array, piece.found);
    pieces.clear();
    bytes = 0;
    return {};
  };
  for (std::size_t array = 0; array < arrays.size(); ++array) {
    PieceBoxes boxes(*arrays[array]);
    while (auto box = boxes.next()) {
      const std::uint64_t needed = box->elements() * item_size(arrays[array]->dtype) * kForEachByte;
      const bool full = bytes + needed > runtime.budget().limit() || pieces.size() == kMostPieces;
      if (full) CAIRN_TRY(read_all());
      pieces.push_back({array, *std::move(box), {}});
      bytes += needed;
    }
  }
  return read_all();
}

}  // namespace cairn
