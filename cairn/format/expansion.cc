// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/expansion.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cairn/base/bytes.h"
#include "cairn/base/checked.h"
#include "cairn/base/human.h"

namespace cairn::format {
namespace {

// Decoded bytes for one stored byte, at most.
struct Expansion {
  std::string_view codec;
  std::uint64_t most;
};
// deflate: 258 bytes from two bits. zstd: a block of 128 KiB from four bytes. bz2: 900000 symbols
// that stand for 51 bytes each, from a block of a dozen bytes at least. blosc: the codecs inside
// it.
constexpr std::array kExpansions{
    Expansion{"gzip", 1032},     Expansion{"zlib", 1032},   Expansion{"zstd", 1 << 15},
    Expansion{"blosc", 1 << 15}, Expansion{"bz2", 1 << 22},
};

std::uint64_t most_expansion(const CodecSpec& codec) {
  const Json* id = codec.config().find("id");
  const auto* row = std::ranges::find_if(
      kExpansions, [&](const Expansion& e) { return id != nullptr && *id == Json(e.codec); });
  return row == kExpansions.end() ? kExpansions.back().most : row->most;
}

}  // namespace

Result<void> check_raw_size(std::uint64_t stored_bytes, std::uint64_t chunk_bytes) {
  if (stored_bytes == chunk_bytes) return {};
  return Error(Code::kCorrupt, "chunk/size",
               fmt::format("a raw chunk has {} bytes instead of {}; it was cut, or belongs to "
                           "another array",
                           stored_bytes, chunk_bytes));
}

Result<void> check_expansion(const StoredArray& array, std::uint64_t stored_bytes) {
  const std::uint64_t decoded = array.chunk_bytes();
  if (array.codec.is_raw()) return check_raw_size(stored_bytes, decoded);
  if (stored_bytes < ceil_div(decoded, most_expansion(array.codec))) {
    return Error(
        Code::kCorrupt, "chunk/expansion",
        fmt::format("{} of {} cannot expand to a chunk of {}; the chunk was cut, or the "
                    "array's metadata is not its own",
                    format_bytes(stored_bytes), array.codec.name(), format_bytes(decoded)));
  }
  if (stored_bytes > 2 * decoded + kMiB) {
    return Error(
        Code::kCorrupt, "chunk/oversized",
        fmt::format("{} of {} are far more than a chunk of {} can need", format_bytes(stored_bytes),
                    array.codec.name(), format_bytes(decoded)));
  }
  return {};
}

}  // namespace cairn::format
