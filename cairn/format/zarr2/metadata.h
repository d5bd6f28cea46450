// SPDX-License-Identifier: Apache-2.0
// `.zarray`: zarr v2 metadata, parsed from hostile bytes and written as TensorStore writes it. See
// docs/format/zarr2.md for every member, what is refused and with which reason.
#pragma once

#include <string>
#include <string_view>

#include "cairn/base/bytes.h"
#include "cairn/format/stored_array.h"

namespace cairn::format::zarr2 {

constexpr std::string_view kMetadataName = ".zarray";

/// Longest `.zarray` that is read.
constexpr std::size_t kMaxMetadataBytes = std::size_t{1} << 20;
/// Largest decoded chunk with a compressor: it must fit in memory.
constexpr std::uint64_t kMaxCompressedChunkBytes = 64 * kGiB;
/// Most chunks of one array. Each costs a plan some memory, even a chunk that is not stored.
constexpr std::uint64_t kMaxChunks = std::uint64_t{1} << 22;

/// Pure. `key` of the result is empty. `corrupt` for damaged text, `unimplemented` for features of
/// zarr that we refuse by name; every reason begins with zarr2/. The codec of the result can be
/// made (chunk_codec.h), and dump_metadata() of the result parses to the same array.
Result<StoredArray> parse_metadata(std::string_view text);

/// nlohmann-style text: sorted members, no spaces, fill_value null unless the array has one.
/// `invalid_argument` (zarr2/dtype-unsupported) for types zarr2 does not have (uint2, uint4,
/// float8_e4m3, float6_*), (zarr2/not-representable) for packed or one-object arrays and for what
/// has no spelling: a big endian bfloat16, a NaN with a payload as fill value.
Result<std::string> dump_metadata(const StoredArray& array);

}  // namespace cairn::format::zarr2
