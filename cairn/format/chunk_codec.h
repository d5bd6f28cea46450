// SPDX-License-Identifier: Apache-2.0
// `ChunkCodec`: decodes the stored bytes of a chunk to elements in memory, and encodes them.
#pragma once

#include <memory>

#include "cairn/base/buffer.h"
#include "cairn/codec/codec.h"
#include "cairn/format/stored_array.h"

namespace cairn::format {

/// Made once for an array, then used for each of its chunks; outlives the StoredArray. Copies share
/// the codec. Threading: safe.
class ChunkCodec {
 public:
  /// `invalid_argument` for a codec that cannot be used here: the reasons of codec/registry.h.
  static Result<ChunkCodec> make(const StoredArray& array);

  /// Stored bytes of one chunk to elements in memory order (StoredArray::chunk_strides()):
  /// decompressed, little endian, unpacked, unused high bits cleared. `corrupt`: chunk/size (a raw
  /// chunk of another length), chunk/bool (a byte that is neither 0 nor 1), and the codec's
  /// reasons; `out` then holds anything. REQUIRES: out.size() == chunk_memory_bytes().
  Result<void> decode(ByteSpan stored, MutableByteSpan out) const;

  /// Elements in memory order to stored bytes; unused high bits are cleared. Bytes that need no
  /// change are not copied: the buffer then borrows `cells`, which must outlive it.
  /// `invalid_argument`: chunk/bool, and the limits of the codec. REQUIRES: cells.size() ==
  /// chunk_memory_bytes().
  Result<Buffer> encode(ByteSpan cells) const;

 private:
  ChunkCodec() = default;
  Result<Buffer> decompress(ByteSpan stored) const;
  Result<Buffer> to_stored_elements(ByteSpan cells) const;

  DType dtype_ = DType::kFloat32;
  bool swap_ = false;
  bool packed_ = false;
  std::uint64_t stored_bytes_ = 0;  // before the codec, so that a raw chunk has exactly these
  std::shared_ptr<const codec::Codec> codec_;  // null: raw
};

}  // namespace cairn::format
