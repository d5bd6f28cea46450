// SPDX-License-Identifier: Apache-2.0
// Pieces that ranks leave for the rank that assembles a tensor: each box of it, in its own C order,
// as a sequence of objects of equal size.
#pragma once

#include <memory>
#include <string>

#include "cairn/save/save_plan.h"
#include "cairn/storage/store.h"

namespace cairn {

/// The elements of a piece, placed in `scratch`, which is reused if it is large enough.
Result<ByteSpan> piece_cells(const PlannedArray& array, const LeftPiece& piece, Buffer& scratch);
/// `name` is the array's in the store of pieces.
Result<void> put_piece(storage::Store& store, const std::string& name, const LeftPiece& piece,
                       ByteSpan cells);

/// The whole array, read from the pieces: only the bytes that a call needs. `array` and `store`
/// must outlive it.
std::shared_ptr<const LeafSource> pieces_source(storage::Store& store, std::string name,
                                                const PlannedArray& array);

}  // namespace cairn
