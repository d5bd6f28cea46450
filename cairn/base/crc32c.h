// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), the checksum of every stored block. As fast as memory.
#pragma once

#include <cstdint>

#include "cairn/base/bytes.h"

namespace cairn {

/// CRC of `bytes`, continuing from `crc` (0 to begin): crc32c(b, crc32c(a)) == crc32c(a then b).
std::uint32_t crc32c(ByteSpan bytes, std::uint32_t crc = 0);

/// CRC of a then b, from those of a and of b. Logarithmic in `b_bytes`.
std::uint32_t join_crc32c(std::uint32_t a, std::uint32_t b, std::uint64_t b_bytes);

/// Copies and sums in one pass over memory. REQUIRES: to.size() == from.size(), no overlap.
std::uint32_t copy_crc32c(MutableByteSpan to, ByteSpan from, std::uint32_t crc = 0);

}  // namespace cairn
