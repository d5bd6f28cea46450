// SPDX-License-Identifier: Apache-2.0
// Checks arrays against the SHA-256 stored by their save.
#pragma once

#include <cstddef>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// One digest of an array: of all of it, or the n-th of its pieces.
struct DigestPlace {
  std::size_t array = 0;  ///< in the prefix
  std::size_t piece = 0;
};
/// All digests of these arrays.
std::vector<DigestPlace> digests_of(const OpenedPrefix& prefix,
                                    const std::vector<std::size_t>& arrays);

/// Reads the elements, in pieces where possible, and compares. `corrupt` (load/sha256) with leaf
/// and place; `resource_exhausted` (load/no-memory) for an array of another system that cannot fit
/// into the memory of this machine; errors of read_boxes().
Result<void> check_digest(const OpenedPrefix& prefix, const DigestPlace& place, Runtime& runtime);

}  // namespace cairn
