// SPDX-License-Identifier: Apache-2.0
// Checksums as writers compute them: of ranges of chunks, each by the rank that wrote it. Joined,
// they become the sums of a manifest.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// Bytes [begin, end) of a stored chunk, within one block of kBlockBytes.
struct SummedRange {
  std::uint32_t array = 0;  ///< index in the prefix
  std::uint32_t crc = 0;
  std::uint64_t chunk = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const SummedRange&) const = default;
};

/// SHA-256 of a part of an array, as in PieceDigest: [begin, end) counts chunks, or elements if the
/// array is one object.
struct HashedRange {
  std::uint32_t array = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Sha256Digest sha256 = {};
  bool operator==(const HashedRange&) const = default;
};

/// Sums of what was written of a prefix.
struct WrittenSums {
  std::vector<SummedRange> ranges = {};
  std::vector<HashedRange> hashes = {};
  void add(const WrittenSums& other);
  bool operator==(const WrittenSums&) const = default;
};

/// Sums the ranges of `bytes`, which start at `offset` of a stored chunk, and passes each on to
/// `write` while it is in the cache.
template <typename Write>
Result<void> sum_ranges(SummedRange at, std::uint64_t offset, ByteSpan bytes,
                        std::vector<SummedRange>& ranges, const Write& write);

/// The sums of each array; `arrays` says how it is stored. Each byte of each chunk must have been
/// summed exactly once: `internal` (sums/missing, sums/twice) with the leaf and the chunk. An array
/// with any hashes must be hashed whole and once (sums/hashes). n log n in ranges.
Result<void> join_sums(WrittenSums written, std::vector<ManifestArray>& arrays);

}  // namespace cairn

#include <algorithm>

#include "cairn/base/crc32c.h"

namespace cairn {

template <typename Write>
Result<void> sum_ranges(SummedRange at, std::uint64_t offset, ByteSpan bytes,
                        std::vector<SummedRange>& ranges, const Write& write) {
  while (!bytes.empty()) {
    const std::uint64_t room = kBlockBytes - offset % kBlockBytes;
    const ByteSpan block = bytes.first(std::min<std::size_t>(room, bytes.size()));
    at.begin = offset;
    at.end = offset + block.size();
    at.crc = crc32c(block);
    CAIRN_TRY(write(offset, block));
    ranges.push_back(at);
    offset = at.end;
    bytes = bytes.subspan(block.size());
  }
  return {};
}

}  // namespace cairn
