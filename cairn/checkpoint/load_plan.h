// SPDX-License-Identifier: Apache-2.0
// Wanted boxes against stored chunks: which bytes are read, before any is. Pure and deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/checkpoint/manifest.h"

namespace cairn::inline checkpoint {

/// A box of a stored array that somebody wants; inside the array's shape.
struct WantedBox {
  const ManifestArray* array = nullptr;
  Box box;
};

/// One read: a range of one chunk's stored bytes, needed by one wanted box.
struct ReadJob {
  std::size_t wanted = 0;  ///< index into the boxes that were planned
  std::uint64_t chunk = 0;
  /// Of the chunk's bytes. For chunks that must be read whole (compressed, packed, ...) end is the
  /// stored length where a manifest tells it, else kToTheEnd.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0};

/// Largest range of one job; one chunk that must be decoded whole may be larger.
constexpr std::uint64_t kReadPieceBytes = 8 * kMiB;
/// Without checksums, ranges nearer than this are read as one.
constexpr std::uint64_t kCoalesceBytes = 4 * kKiB;

struct LoadPlan {
  std::vector<ReadJob> jobs;
  std::uint64_t bytes = 0;         ///< that will be read; chunks of unknown length count decoded
  std::uint64_t wanted_bytes = 0;  ///< of the boxes' elements
};

/// Each stored byte that a box needs is read once for it, rounded out to checksum blocks if `check`
/// and the array has sums; nothing else is read. Linear in boxes plus the chunks they meet.
LoadPlan plan_load(const std::vector<WantedBox>& wanted, bool check);

/// Boxes that cover the array once, in an order and of sizes in which reading them one by one is
/// cheap: whole chunks where chunks must be decoded, runs of at most kReadPieceBytes elsewhere.
std::vector<Box> piece_boxes(const format::StoredArray& array);

/// Can parts of a chunk be read alone?
bool reads_by_range(const format::StoredArray& array);

}  // namespace cairn::inline checkpoint
