// SPDX-License-Identifier: Apache-2.0
// Checksums as writers find them: of ranges of chunks, by whoever wrote each. Joined, they are the
// sums of a manifest.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// Bytes [begin, end) of what is stored of one chunk, within one block of kBlockBytes.
struct SummedRange {
  std::uint32_t array = 0;  ///< index in the prefix
  std::uint32_t crc = 0;
  std::uint64_t chunk = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const SummedRange&) const = default;
};

/// SHA-256 of part of an array, as PieceDigest says it: [begin, end) counts chunks, or the elements
/// of an array that is one object.
struct HashedRange {
  std::uint32_t array = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Sha256Digest sha256 = {};
  bool operator==(const HashedRange&) const = default;
};

/// What was written of a prefix.
struct WrittenSums {
  std::vector<SummedRange> ranges = {};
  std::vector<HashedRange> hashes = {};
  void add(const WrittenSums& other);
  bool operator==(const WrittenSums&) const = default;
};

/// The ranges of `bytes`, which lie at `offset` of a chunk's stored bytes, each handed on to
/// `write` while it is in the cache.
template <typename Write>
Result<void> sum_ranges(SummedRange at, std::uint64_t offset, ByteSpan bytes,
                        std::vector<SummedRange>& ranges, const Write& write);

/// Sums of each array, of which `arrays` says how it is stored. Each byte of each chunk must have
/// been summed once: `internal` (sums/missing, sums/twice) with the leaf and the chunk. An array
/// that was hashed at all must have been so once and whole, too (sums/hashes). n log n in ranges.
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
