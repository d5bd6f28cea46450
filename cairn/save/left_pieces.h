// SPDX-License-Identifier: Apache-2.0
// What ranks leave for the one that puts a tensor together: each box of it, in its own C order, as
// a row of objects of equal size.
#pragma once

#include <memory>
#include <string>

#include "cairn/save/save_plan.h"
#include "cairn/storage/store.h"

namespace cairn {

/// The elements of a piece, made in `scratch`, which is used as it is if it is large enough.
Result<ByteSpan> piece_cells(const PlannedArray& array, const LeftPiece& piece, Buffer& scratch);
/// `name` is the array's in the store of pieces.
Result<void> put_piece(storage::Store& store, const std::string& name, const LeftPiece& piece,
                       ByteSpan cells);

/// The whole array, read from what was left of it: only the bytes that a call needs. `array` and
/// `store` must outlive it.
std::shared_ptr<const LeafSource> pieces_source(storage::Store& store, std::string name,
                                                const PlannedArray& array);

}  // namespace cairn
