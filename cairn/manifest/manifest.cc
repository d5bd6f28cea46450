// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/manifest.h"

#include <utility>

#include <fmt/format.h>

namespace cairn {

Result<ChunkSums> ChunkSums::make(std::uint64_t block_bytes, std::vector<std::uint64_t> lengths,
                                  std::vector<std::uint32_t> crcs) {
  ChunkSums sums;
  sums.block_bytes_ = block_bytes;
  sums.first_block_.reserve(lengths.size());
  std::uint64_t blocks = 0;
  for (const std::uint64_t length : lengths) {
    sums.first_block_.push_back(blocks);
    blocks += block_count(length, block_bytes);
    if (blocks > crcs.size()) break;
  }
  if (blocks != crcs.size()) {
    return Error(
        Code::kCorrupt, "manifest/checksums",
        fmt::format("the {} checksums do not match the blocks of the chunks", crcs.size()));
  }
  sums.lengths_ = std::move(lengths);
  sums.crcs_ = std::move(crcs);
  return sums;
}

std::uint64_t piece_total(const format::StoredArray& stored) {
  return stored.one_object ? Box::whole(stored.shape).elements() : stored.chunk_count();
}

}  // namespace cairn
