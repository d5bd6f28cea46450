// SPDX-License-Identifier: Apache-2.0
// Plans which stored bytes to read for the wanted boxes, before anything is read. Pure and
// deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// A wanted box of a stored array; inside its shape.
struct WantedBox {
  const ManifestArray* array = nullptr;
  Box box;
};

/// A range of one chunk's stored bytes, and the boxes that need some of it.
struct ReadJob {
  std::size_t first_wanted = 0;  ///< LoadPlan::wanted has the boxes from here on
  std::size_t wanted_count = 0;
  std::uint64_t chunk = 0;
  /// Range in the bytes of the chunk. For chunks that must be read whole (compressed, packed, ...)
  /// end is the stored length if the manifest has it, else kToTheEnd.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0};

/// One request: jobs with adjacent bytes in one object.
struct ReadRun {
  std::size_t first_job = 0;
  std::size_t job_count = 0;
  std::uint64_t bytes = 0;  ///< gaps between the jobs included
};

/// Largest range of one job; one chunk that must be decoded whole may be larger.
constexpr std::uint64_t kReadPieceBytes = 8 * kMiB;
/// Without checksums, ranges with smaller gaps are read as one; so are small tensors of one file.
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

/// Every needed byte is read once, however many boxes need it, rounded out to checksum blocks if
/// `check` is set and the array has sums. Nothing else is read except gaps under kCoalesceBytes.
/// The boxes of one array must be contiguous. About linear in boxes plus the chunks that they
/// overlap.
LoadPlan plan_load(const std::vector<WantedBox>& wanted, bool check);

/// Where in its object a job's bytes lie.
std::uint64_t object_offset(const format::StoredArray& array, const ReadJob& job);

/// Boxes that cover an array once, ordered and sized so that reading them one by one is cheap:
/// whole chunks if chunks must be decoded, else runs of at most kReadPieceBytes. Generated one at a
/// time, because a small file can claim any number of them.
class PieceBoxes {
 public:
  explicit PieceBoxes(const format::StoredArray& array);  ///< which must outlive it

  /// nullopt after the last.
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
