// SPDX-License-Identifier: Apache-2.0
// Copies of boxes between strided memory: the inner loop of every save and load.
#pragma once

#include "cairn/array/dtype.h"
#include "cairn/array/shape.h"
#include "cairn/base/bytes.h"

namespace cairn {

/// A strided place in memory: `data` is the element at index 0.
struct StridedSpan {
  std::byte* data = nullptr;
  const Strides* strides = nullptr;
};
struct ConstStridedSpan {
  const std::byte* data = nullptr;
  const Strides* strides = nullptr;
};

/// Bytes from the element at index 0 to that at `index`.
std::int64_t byte_offset(const Shape& index, const Strides& strides);

/// Copies `shape` elements of `item_size` bytes. Merges dimensions that are contiguous on both
/// sides, so that a dense copy is one memcpy. REQUIRES: both places hold the whole shape, of rank
/// at most kMaxRank, and do not overlap.
void copy_strided(const Shape& shape, std::size_t item_size, ConstStridedSpan from, StridedSpan to);

/// Reverses the bytes of each element in place, to convert between big and little endian; complex
/// types reverse each half.
void swap_byte_order(DType dtype, MutableByteSpan bytes);

/// Packs one-byte elements to `bits` (2, 4 or 6) each, first element in the lowest bits, and back.
/// `to` holds ceil(elements * bits / 8) bytes. Unpacking starts `first_bit` bits into `from`.
void pack_bits(int bits, ByteSpan from, MutableByteSpan to);
void unpack_bits(int bits, ByteSpan from, std::uint64_t first_bit, MutableByteSpan to);

}  // namespace cairn
