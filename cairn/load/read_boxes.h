// SPDX-License-Identifier: Apache-2.0
// Performs a load plan: reads, checks, decodes, casts and scatters straight into the destinations.
#pragma once

#include <string>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/load/load_plan.h"
#include "cairn/runtime/progress.h"
#include "cairn/runtime/runtime.h"
#include "cairn/storage/store.h"

namespace cairn {

/// A wanted box and where it goes.
struct BoxTarget {
  WantedBox wanted;
  Array to;  ///< of the box's shape, any strides; its dtype is the stored one or castable from it
};

struct ReadOptions {
  bool check = true;  ///< compare every block with its CRC, where the array has sums
  ProgressSink progress = {};
};

/// `corrupt`: load/checksum (with chunk, block, expected and found), load/chunk-missing (though the
/// manifest lists it), load/chunk-length, and errors of decoding; each names leaf and object. A
/// missing chunk of an array without sums holds the fill value. After an error the content of the
/// destinations is undefined.
Result<void> read_boxes(storage::Store& store, const std::vector<BoxTarget>& targets,
                        const ReadOptions& options, Runtime& runtime);

/// Compares `bytes`, the stored bytes of a chunk from `begin` on, with the sums of their blocks;
/// `begin` is a block boundary. REQUIRES: the array has sums. `corrupt` (load/checksum).
Result<void> check_blocks(const ManifestArray& array, std::uint64_t chunk, std::uint64_t begin,
                          ByteSpan bytes);

/// Loads one box of one array, dense. Reads only the blocks that it needs. `resource_exhausted`
/// (load/no-memory) if it cannot fit into the memory of this process. REQUIRES: the prefix has the
/// array, and the box lies within its shape.
Result<Array> load_box(const OpenedPrefix& prefix, std::size_t which, const Box& box,
                       Runtime& runtime, bool check = true);

}  // namespace cairn
