// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/chunk_codec.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "cairn/array/strided_copy.h"
#include "cairn/codec/registry.h"
#include "cairn/format/expansion.h"

namespace cairn::format {
namespace {

/// Bits of a one-byte element that may be set: 0x0f for int4, 0xff for whole-byte types.
std::byte used_bits(DType dtype) {
  return static_cast<std::byte>((1 << std::min(bit_width(dtype), 8)) - 1);
}

/// All bits that are set in any of `bytes`.
std::byte seen_bits(ByteSpan bytes) {
  std::byte seen{0};
  for (std::byte b : bytes) seen |= b;
  return seen;
}

Result<void> check_bool(ByteSpan bytes, Code code) {
  if (seen_bits(bytes) <= std::byte{1}) return {};
  const auto bad = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  return Error(code, "chunk/bool",
               fmt::format("element {} of a chunk of bool is the byte {:#04x}; bool is 0 or 1",
                           bad - bytes.begin(), std::to_integer<int>(*bad)));
}

void copy_bytes(ByteSpan from, MutableByteSpan to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

void clear_unused(DType dtype, MutableByteSpan bytes) {
  const std::byte used = used_bits(dtype);
  if (used == std::byte{0xff}) return;
  for (std::byte& b : bytes) b &= used;
}

}  // namespace

Result<ChunkCodec> ChunkCodec::make(const StoredArray& array) {
  ChunkCodec made;
  made.dtype_ = array.dtype;
  made.swap_ = array.big_endian && item_size(array.dtype) > 1;
  made.packed_ = array.packed && bit_width(array.dtype) < 8;
  made.stored_bytes_ = array.chunk_bytes();
  if (array.codec.is_raw()) return made;
  CAIRN_TRY_ASSIGN(made.codec_, codec::make_codec(array.codec.config(), item_size(array.dtype)));
  return made;
}

Result<void> ChunkCodec::decode(ByteSpan stored, MutableByteSpan out) const {
  if (packed_) {
    CAIRN_TRY_ASSIGN(const Buffer bits, decompress(stored));
    unpack_bits(bit_width(dtype_), bits.bytes(), 0, out);
    return {};
  }
  if (codec_) {
    CAIRN_TRY(codec_->decode(stored, out));
  } else {
    CAIRN_TRY(check_raw_size(stored.size(), stored_bytes_));
    copy_bytes(stored, out);
  }
  if (swap_) swap_byte_order(dtype_, out);
  if (dtype_ == DType::kBool) return check_bool(out, Code::kCorrupt);
  clear_unused(dtype_, out);
  return {};
}

Result<Buffer> ChunkCodec::decompress(ByteSpan stored) const {
  if (!codec_) {
    CAIRN_TRY(check_raw_size(stored.size(), stored_bytes_));
    return Buffer::lend(stored, nullptr);
  }
  CAIRN_TRY_ASSIGN(Buffer out, Buffer::allocate(stored_bytes_));
  CAIRN_TRY(codec_->decode(stored, out.mutable_bytes()));
  return out;
}

Result<Buffer> ChunkCodec::encode(ByteSpan cells) const {
  CAIRN_TRY_ASSIGN(Buffer raw, to_stored_elements(cells));
  if (!codec_) return raw;
  return codec_->encode(raw.bytes());
}

Result<Buffer> ChunkCodec::to_stored_elements(ByteSpan cells) const {
  if (dtype_ == DType::kBool) CAIRN_TRY(check_bool(cells, Code::kInvalidArgument));
  if (packed_) {
    CAIRN_TRY_ASSIGN(Buffer bits, Buffer::allocate(stored_bytes_));
    pack_bits(bit_width(dtype_), cells, bits.mutable_bytes());
    return bits;
  }
  const std::byte used = used_bits(dtype_);
  const bool clean = used == std::byte{0xff} || (seen_bits(cells) & ~used) == std::byte{0};
  if (clean && !swap_) return Buffer::lend(cells, nullptr);
  CAIRN_TRY_ASSIGN(Buffer changed, Buffer::allocate(cells.size()));
  copy_bytes(cells, changed.mutable_bytes());
  if (swap_) swap_byte_order(dtype_, changed.mutable_bytes());
  clear_unused(dtype_, changed.mutable_bytes());
  return changed;
}

}  // namespace cairn::format
