// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/check_digest.h"

#include <fmt/format.h>

#include "cairn/array/flat_range.h"
#include "cairn/base/base64.h"
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
  Sha256 sha;
  for (const Box& box : piece.boxes) {
    CAIRN_TRY_ASSIGN(const Array cells, load_box(prefix, place.array, box, runtime, false));
    sha.update(cells.bytes());
  }
  const std::string found = sha.hex();
  if (found == piece.sha256) return {};
  return Error(Code::kCorrupt, "load/sha256",
               fmt::format("leaf {}{}: SHA-256 is {}, expected {}", array.path.text(), piece.name,
                           found, piece.sha256));
}

}  // namespace cairn
