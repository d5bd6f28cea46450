// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/sums.h"

#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/base64.h"

namespace cairn {

namespace {

// Not a function, so that sorting need not call it.
constexpr auto kPlaceOf = [](const SummedRange& range) {
  return std::tuple(range.array, range.chunk, range.begin);
};

Error sums_error(const char* reason, const ManifestArray& array, std::uint64_t chunk,
                 std::string_view what) {
  return Error(
      Code::kInternal, reason,
      fmt::format("leaf {}: chunk {} {}", array.path.text(), array.stored.chunk_name(chunk), what));
}

Error no_array(std::size_t number, std::size_t count) {
  return Error(Code::kInternal, "sums/no-array",
               fmt::format("a writer summed array {}, but there are only {}", number, count));
}

/// Takes the ranges of one array, in order.
class ArraySums {
 public:
  explicit ArraySums(const ManifestArray& array)
      : array_(array), chunks_(array.stored.chunk_count()) {
    lengths_.reserve(chunks_);
  }

  Result<void> add(const SummedRange& range) {
    if (range.chunk >= chunks_)
      return Error(Code::kInternal, "sums/no-chunk",
                   fmt::format("leaf {} has no chunk {}", array_.path.text(), range.chunk));
    if (lengths_.empty() || range.chunk != lengths_.size() - 1) {
      CAIRN_TRY(check_full());
      if (range.chunk != lengths_.size())
        return sums_error("sums/missing", array_, lengths_.size(), "was not written");
      lengths_.push_back(0);
    }
    std::uint64_t& length = lengths_.back();
    if (range.begin < length)
      return sums_error("sums/twice", array_, range.chunk, "was written twice");
    if (range.begin > length)
      return sums_error("sums/missing", array_, range.chunk, "has bytes that were not written");
    if (length % kBlockBytes == 0) {
      crcs_.push_back(range.crc);
    } else {
      crcs_.back() = join_crc32c(crcs_.back(), range.crc, range.end - range.begin);
    }
    length = range.end;
    return {};
  }

  Result<ChunkSums> finish() && {
    CAIRN_TRY(check_full());
    if (lengths_.size() != chunks_)
      return sums_error("sums/missing", array_, lengths_.size(), "was not written");
    return ChunkSums::make(kBlockBytes, std::move(lengths_), std::move(crcs_));
  }

 private:
  // What is stored raw has one length; a codec's output has any.
  Result<void> check_full() const {
    if (lengths_.empty() || !array_.stored.codec.is_raw()) return {};
    if (lengths_.back() == array_.stored.chunk_bytes()) return {};
    return sums_error("sums/missing", array_, lengths_.size() - 1,
                      "has bytes that were not written");
  }

  const ManifestArray& array_;
  const std::uint64_t chunks_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::uint32_t> crcs_;
};

/// Digests of one array, in order.
Result<void> set_digests(std::span<const HashedRange> hashes, ManifestArray& array) {
  std::uint64_t end = 0;
  for (const HashedRange& hash : hashes) {
    if (hash.begin != end) break;
    end = hash.end;
    array.pieces.push_back({end, hash.sha256});
  }
  if (array.pieces.size() != hashes.size() || end != piece_total(array.stored)) {
    return Error(Code::kInternal, "sums/hashes",
                 fmt::format("leaf {} was not hashed whole and once", array.path.text()));
  }
  if (array.pieces.size() > 1) return {};
  array.sha256 = encode_hex(array.pieces.front().sha256);
  array.pieces.clear();
  return {};
}

Result<void> join_hashes(std::vector<HashedRange> hashes, std::vector<ManifestArray>& arrays) {
  std::ranges::sort(hashes, {}, [](const HashedRange& h) { return std::tuple(h.array, h.begin); });
  for (auto next = hashes.begin(); next != hashes.end();) {
    const auto first = next;
    while (next != hashes.end() && next->array == first->array) ++next;
    if (first->array >= arrays.size()) return no_array(first->array, arrays.size());
    CAIRN_TRY(set_digests({first, next}, arrays[first->array]));
  }
  return {};
}

}  // namespace

void WrittenSums::add(const WrittenSums& other) {
  ranges.insert(ranges.end(), other.ranges.begin(), other.ranges.end());
  hashes.insert(hashes.end(), other.hashes.begin(), other.hashes.end());
}

Result<void> join_sums(WrittenSums written, std::vector<ManifestArray>& arrays) {
  CAIRN_TRY(join_hashes(std::move(written.hashes), arrays));
  std::vector<SummedRange>& ranges = written.ranges;
  std::ranges::sort(ranges, {}, kPlaceOf);
  auto next = ranges.begin();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    ArraySums sums(arrays[i]);
    for (; next != ranges.end() && next->array == i; ++next) CAIRN_TRY(sums.add(*next));
    CAIRN_TRY_ASSIGN(arrays[i].sums, std::move(sums).finish());
  }
  return next == ranges.end() ? Result<void>() : no_array(next->array, arrays.size());
}

}  // namespace cairn
