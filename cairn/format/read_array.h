// SPDX-License-Identifier: Apache-2.0
// Reads a whole array from a store in the simplest way: one chunk after another, on this thread.
// Loads of checkpoints use plans instead.
#pragma once

#include "cairn/base/bytes.h"
#include "cairn/format/stored_array.h"
#include "cairn/storage/store.h"

namespace cairn::format {

/// Dense, C order. Missing chunks hold the fill value. `resource_exhausted`
/// (format/array-too-large) above `limit` bytes. Checks the sizes of all stored chunks
/// (expansion.h) before it allocates. Errors name the object of the chunk.
Result<Array> read_array(storage::Store& store, const StoredArray& array,
                         std::uint64_t limit = 64 * kGiB);

}  // namespace cairn::format
