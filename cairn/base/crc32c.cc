// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/crc32c.h"

#include <algorithm>
#include <cstring>

#include <isa-l/crc.h>

namespace cairn {
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

// Sums are polynomials over GF(2) modulo the generator, lowest bit = highest power.
constexpr std::uint32_t kGenerator = 0x82f63b78;
constexpr std::uint32_t kOne = 0x80000000;

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1) != 0 ? kGenerator : 0);
}

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; a != 0; a <<= 1, b = times_x(b)) {
    if ((a & kOne) != 0) sum ^= b;
  }
  return sum;
}

}  // namespace

std::uint32_t join_crc32c(std::uint32_t a, std::uint32_t b, std::uint64_t b_bytes) {
  std::uint32_t power = kOne >> 8;  // x^8: one byte further
  for (; b_bytes != 0; b_bytes >>= 1, power = product(power, power)) {
    if ((b_bytes & 1) != 0) a = product(a, power);
  }
  return a ^ b;
}

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

}  // namespace cairn
