// SPDX-License-Identifier: Apache-2.0
// The question to ask before memory is taken for a decoded chunk, whose size is only claimed.
#pragma once

#include "cairn/format/stored_array.h"

namespace cairn::format {

/// Could these many stored bytes be one chunk of the array? A stream that no codec could expand
/// that far is refused here, so that metadata which claims a huge chunk allocates nothing.
/// `corrupt`: chunk/size (a raw chunk of another length), chunk/expansion (too few bytes),
/// chunk/oversized (far too many).
Result<void> check_expansion(const StoredArray& array, std::uint64_t stored_bytes);

/// The part of it for raw chunks: `corrupt` (chunk/size) unless the two are equal.
Result<void> check_raw_size(std::uint64_t stored_bytes, std::uint64_t chunk_bytes);

}  // namespace cairn::format
