// SPDX-License-Identifier: Apache-2.0
// Wanted boxes against stored chunks: which bytes are read, before any is. Pure and deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// A box of a stored array that somebody wants; inside the array's shape.
struct WantedBox {
  const ManifestArray* array = nullptr;
  Box box;
};

/// A range of one chunk's stored bytes, and the boxes that need some of it.
struct ReadJob {
  std::size_t first_wanted = 0;  ///< LoadPlan::wanted has the boxes from here on
  std::size_t wanted_count = 0;
  std::uint64_t chunk = 0;
  /// Of the chunk's bytes. For chunks that must be read whole (compressed, packed, ...) end is the
  /// stored length where a manifest tells it, else kToTheEnd.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0};

/// One request: jobs whose bytes lie together in one object.
struct ReadRun {
  std::size_t first_job = 0;
  std::size_t job_count = 0;
  std::uint64_t bytes = 0;  ///< gaps between the jobs included
};

/// Largest range of one job; one chunk that must be decoded whole may be larger.
constexpr std::uint64_t kReadPieceBytes = 8 * kMiB;
/// Without checksums, ranges nearer than this are read as one; so are small tensors of one file.
constexpr std::uint64_t kCoalesceBytes = 4 * kKiB;

struct LoadPlan {
  std::vector<ReadJob> jobs;
  std::vector<std::size_t> wanted;  ///< indices of the boxes that were planned, see ReadJob
  std::vector<ReadRun> runs;        ///< all jobs, each once
  std::uint64_t bytes = 0;          ///< that will be read; chunks of unknown length count decoded
  std::uint64_t wanted_bytes = 0;   ///< of the boxes' elements, equal boxes once

  std::span<const std::size_t> wanted_of(const ReadJob& job) const {
    return std::span(wanted).subspan(job.first_wanted, job.wanted_count);
  }
};

/// Each stored byte that the boxes need is read once, however many need it, rounded out to checksum
/// blocks if `check` and the array has sums; nothing else is read but gaps under kCoalesceBytes.
/// Boxes of one array stand together. About linear in boxes plus the chunks they meet.
LoadPlan plan_load(const std::vector<WantedBox>& wanted, bool check);

/// Where in its object a job's bytes lie.
std::uint64_t object_offset(const format::StoredArray& array, const ReadJob& job);

/// Boxes that cover an array once, in an order and of sizes in which reading them one by one is
/// cheap: whole chunks where chunks must be decoded, runs of at most kReadPieceBytes elsewhere. One
/// at a time: what a small file claims can have any number of them.
class PieceBoxes {
 public:
  explicit PieceBoxes(const format::StoredArray& array);  ///< which must outlive it

  /// Nothing after the last.
  std::optional<Box> next();

 private:
  const format::StoredArray& array_;
  const std::uint64_t step_;   // elements of a piece
  std::uint64_t chunk_ = 0;    // of the next piece
  std::uint64_t element_ = 0;  // of the chunk, where the next piece begins
  std::vector<Box> ready_;     // last first
};

/// Can parts of a chunk be read alone?
bool reads_by_range(const format::StoredArray& array);

}  // namespace cairn
