// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/check_digest.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/array/flat_range.h"
#include "cairn/base/base64.h"
#include "cairn/base/bytes.h"
#include "cairn/base/human.h"
#include "cairn/base/sha256.h"
#include "cairn/load/read_boxes.h"

namespace cairn {

namespace {

/// What a digest is of, and as a person says it.
struct Piece {
  std::vector<Box> boxes;
  std::string name;
  std::string sha256;
};

Piece piece_at(const ManifestArray& array, std::size_t n) {
  const format::StoredArray& stored = array.stored;
  if (!array.sha256.empty()) return {{Box::whole(stored.shape)}, "", array.sha256};
  const PieceDigest& piece = array.pieces[n];
  const std::string sha256 = encode_hex(piece.sha256);
  if (!stored.one_object) {
    const std::uint64_t chunk = piece.end - 1;
    return {{stored.chunk_box(chunk)}, ", chunk " + stored.chunk_name(chunk), sha256};
  }
  const std::uint64_t begin = n == 0 ? 0 : array.pieces[n - 1].end;
  return {flat_range_boxes(stored.shape, begin, piece.end),
          fmt::format(", elements {} to {}", begin, piece.end), sha256};
}

/// Is there anything of the box that must be decoded in whole chunks?
bool is_decoded(const OpenedPrefix& prefix, const format::StoredArray& stored, const Box& box) {
  return !reads_by_range(stored) &&
         std::ranges::any_of(stored.chunks_of(box), [&](std::uint64_t chunk) {
           return prefix.store->stat(stored.chunk_key(chunk)).has_value();
         });
}

/// The elements of a box in C order: by pieces, or all together where chunks must be decoded.
Result<void> hash_box(const OpenedPrefix& prefix, std::size_t which, const Box& box,
                      Runtime& runtime, Sha256& sha) {
  const format::StoredArray& stored = prefix.manifest.arrays[which].stored;
  const std::uint64_t elements = box.elements();
  const std::uint64_t step =
      is_decoded(prefix, stored, box) ? elements : kReadPieceBytes / item_size(stored.dtype);
  for (std::uint64_t at = 0; at < elements; at += step) {
    for (const Box& run : flat_range_boxes(box.shape(), at, std::min(at + step, elements))) {
      CAIRN_TRY_ASSIGN(const Array cells,
                       load_box(prefix, which, run.moved_by(box.begin), runtime, false));
      sha.update(cells.bytes());
    }
  }
  return {};
}

/// The same, so that no chunk is decoded twice and little more than a row of chunks is in memory.
Result<void> hash_rows(const OpenedPrefix& prefix, std::size_t which, Box box, Runtime& runtime,
                       Sha256& sha) {
  if (box.rank() == 0) return hash_box(prefix, which, box, runtime, sha);
  const Index rows = prefix.manifest.arrays[which].stored.chunk_shape[0];
  for (const Index end = std::exchange(box.end[0], box.begin[0]); box.end[0] < end;) {
    box.begin[0] = box.end[0];
    box.end[0] += std::min(rows, end - box.begin[0]);
    CAIRN_TRY(hash_box(prefix, which, box, runtime, sha));
  }
  return {};
}

}  // namespace

std::vector<DigestPlace> digests_of(const OpenedPrefix& prefix,
                                    const std::vector<std::size_t>& arrays) {
  std::vector<DigestPlace> places;
  for (const std::size_t i : arrays) {
    const ManifestArray& array = prefix.manifest.arrays[i];
    const std::size_t count = array.sha256.empty() ? array.pieces.size() : 1;
    for (std::size_t n = 0; n < count; ++n) places.push_back({i, n});
  }
  return places;
}

Result<void> check_digest(const OpenedPrefix& prefix, const DigestPlace& place, Runtime& runtime) {
  const ManifestArray& array = prefix.manifest.arrays[place.array];
  const Piece piece = piece_at(array, place.piece);
  // Nothing on disk bounds what another system's metadata claim: the elements of missing chunks of
  // an array that nobody could load would be hashed for ever.
  const std::uint64_t bytes =
      Box::whole(array.stored.shape).elements() * item_size(array.stored.dtype);
  if (array.sums.empty() && bytes > kGiB && bytes > memory_of_machine()) {
    return Error(Code::kResourceExhausted, "load/no-memory",
                 fmt::format("leaf {} has {}, more than this machine could load, so its SHA-256 is "
                             "not checked",
                             array.path.text(), format_bytes(bytes)));
  }
  Sha256 sha;
  for (const Box& box : piece.boxes) CAIRN_TRY(hash_rows(prefix, place.array, box, runtime, sha));
  const std::string found = sha.hex();
  if (found == piece.sha256) return {};
  return Error(Code::kCorrupt, "load/sha256",
               fmt::format("leaf {}{}: SHA-256 is {}, expected {}", array.path.text(), piece.name,
                           found, piece.sha256));
}

}  // namespace cairn
