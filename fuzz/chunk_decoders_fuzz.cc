// SPDX-License-Identifier: Apache-2.0
// Whatever a decoder takes for a chunk, it fills the chunk to the last byte, and encodes back to
// the same. Input: codec, item size, chunk size (two bytes), then the stored bytes.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "cairn/codec/registry.h"

namespace {

using cairn::ByteSpan;
using cairn::MutableByteSpan;
using cairn::codec::Codec;

constexpr const char* kConfigs[] = {
    R"({"id":"zstd"})", R"({"id":"zstd","checksum":true})",
    R"({"id":"gzip"})", R"({"id":"zlib"})",
    R"({"id":"bz2"})",  R"({"id":"blosc"})",
};

/// The chunk decoded over memory full of `before`; empty if it was refused.
std::vector<std::byte> decoded(const Codec& codec, ByteSpan stored, std::size_t size,
                               std::byte before) {
  std::vector<std::byte> out(size, before);
  if (!codec.decode(stored, MutableByteSpan(out))) out.clear();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 4;
  if (size < kHead) return 0;
  const char* config = kConfigs[data[0] % std::size(kConfigs)];
  const auto codec = cairn::codec::make_codec(*cairn::parse_json(config), data[1] % 16 + 1U);
  const std::size_t chunk_size = data[2] | static_cast<std::size_t>(data[3]) << 8;
  const ByteSpan stored(reinterpret_cast<const std::byte*>(data) + kHead, size - kHead);

  const auto first = decoded(**codec, stored, chunk_size, std::byte{0x00});
  const auto second = decoded(**codec, stored, chunk_size, std::byte{0xff});
  if (first != second) __builtin_trap();
  if (first.empty()) return 0;
  const auto again = (*codec)->encode(first);
  if (!again || decoded(**codec, again->bytes(), chunk_size, std::byte{0}) != first) {
    __builtin_trap();
  }
  return 0;
}
