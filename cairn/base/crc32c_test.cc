// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/crc32c.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cairn {
namespace {

// Bit by bit, from the polynomial.
std::uint32_t slow_crc32c(ByteSpan bytes) {
  std::uint32_t state = ~0u;
  for (const std::byte byte : bytes) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~state;
}

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  return bytes;
}

TEST(Crc32c, GivesThePublishedSums) {
  const struct {
    std::string bytes;
    std::uint32_t crc;
  } kVectors[] = {
      {"", 0},
      {"123456789", 0xe3069283},
      {std::string(32, '\0'), 0x8a9136aa},  // RFC 3720, B.4
      {std::string(32, '\xff'), 0x62a8ab43},
  };
  for (const auto& vector : kVectors) EXPECT_EQ(crc32c(as_bytes(vector.bytes)), vector.crc);
}

TEST(Crc32c, AgreesWithTheDefinitionAndContinues) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto bytes = random_bytes(random, random() % 3000);
    const std::size_t cut = bytes.empty() ? 0 : random() % bytes.size();
    const ByteSpan all(bytes);
    EXPECT_EQ(crc32c(all), slow_crc32c(all));
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), slow_crc32c(all));
  }
}

TEST(Crc32c, JoinsTheSumsOfTwoParts) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto bytes = random_bytes(random, random() % 5000);
    const std::size_t cut = bytes.empty() ? 0 : random() % (bytes.size() + 1);
    const ByteSpan all(bytes);
    const ByteSpan rest = all.subspan(cut);
    EXPECT_EQ(join_crc32c(crc32c(all.first(cut)), crc32c(rest), rest.size()), crc32c(all));
  }
}

TEST(Crc32c, CopiesWhatItSums) {
  std::mt19937 random(2);
  for (const std::size_t size :
       {0u, 1u, 31u, 32u << 10, (32u << 10) + 1, 1u << 20, (1u << 20) + 77}) {
    const auto from = random_bytes(random, size);
    std::vector<std::byte> to(size);
    EXPECT_EQ(copy_crc32c(to, from), crc32c(from)) << size;
    EXPECT_EQ(to, from);
    EXPECT_EQ(copy_crc32c(to, from, 0x1234), crc32c(from, 0x1234)) << size;
  }
}

}  // namespace
}  // namespace cairn
