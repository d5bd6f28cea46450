// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/crc32c.h"

#include <algorithm>
#include <cstring>

#include <isa-l/crc.h>

namespace cairn::inline base {
namespace {

// ISA-L takes the length as an int.
constexpr std::size_t kLargestCall = std::size_t{1} << 30;
// Small enough that the copy is still in the second-level cache when it is summed.
constexpr std::size_t kCopyBlock = std::size_t{32} << 10;

std::uint32_t update(std::uint32_t state, const std::byte* data, std::size_t size) {
  // ISA-L reads only, though its signature does not say so.
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data));
  return crc32_iscsi(bytes, static_cast<int>(size), state);
}

}  // namespace

std::uint32_t crc32c(ByteSpan bytes, std::uint32_t crc) {
  std::uint32_t state = ~crc;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kLargestCall);
    state = update(state, bytes.data(), size);
    bytes = bytes.subspan(size);
  }
  return ~state;
}

std::uint32_t copy_crc32c(MutableByteSpan to, ByteSpan from, std::uint32_t crc) {
  std::uint32_t state = ~crc;
  for (std::size_t at = 0; at < from.size(); at += kCopyBlock) {
    const std::size_t size = std::min(from.size() - at, kCopyBlock);
    std::memcpy(to.data() + at, from.data() + at, size);
    state = update(state, to.data() + at, size);
  }
  return ~state;
}

}  // namespace cairn::inline base
