// SPDX-License-Identifier: Apache-2.0
// A check before memory is allocated for a decoded chunk: its size is only a claim.
#pragma once

#include "cairn/format/stored_array.h"

namespace cairn::format {

/// Could a chunk of the array have this many stored bytes? Refuses streams that no codec could
/// expand that far, so that metadata with a huge chunk size allocates nothing. `corrupt`:
/// chunk/size (a raw chunk of another length), chunk/expansion (too few bytes), chunk/oversized
/// (far too many).
Result<void> check_expansion(const StoredArray& array, std::uint64_t stored_bytes);

/// The check for raw chunks alone: `corrupt` (chunk/size) unless the two are equal.
Result<void> check_raw_size(std::uint64_t stored_bytes, std::uint64_t chunk_bytes);

}  // namespace cairn::format
