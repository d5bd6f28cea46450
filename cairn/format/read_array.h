// SPDX-License-Identifier: Apache-2.0
// A whole array from a store, in the simplest way: one chunk after the other, on this thread.
// Loading checkpoints goes through plans instead.
#pragma once

#include "cairn/base/bytes.h"
#include "cairn/format/stored_array.h"
#include "cairn/storage/store.h"

namespace cairn::format {

/// Dense, C order. Missing chunks are the fill value. `resource_exhausted` (format/array-too-large)
/// for more than `limit` bytes. The sizes of all stored chunks are checked (expansion.h) before
/// memory is taken. Errors name the chunk's object.
Result<Array> read_array(storage::Store& store, const StoredArray& array,
                         std::uint64_t limit = 64 * kGiB);

}  // namespace cairn::format
