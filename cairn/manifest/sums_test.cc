// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/sums.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

ManifestArray raw_bytes(std::uint64_t size, Index chunk) {
  ManifestArray array;
  array.path = KeyPath({"w"});
  array.stored.dtype = DType::kUint8;
  array.stored.shape = {static_cast<Index>(size)};
  array.stored.chunk_shape = {chunk};
  return array;
}

/// Ranges of `bytes` cut at random places, in random order.
std::vector<SummedRange> random_ranges(testing::Random& random, ByteSpan bytes) {
  std::vector<SummedRange> ranges;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size =
        std::min<std::size_t>(1 + testing::below(random, 2 * kBlockBytes), bytes.size() - at);
    EXPECT_TRUE(sum_ranges({}, at, bytes.subspan(at, size), ranges,
                           [](std::uint64_t, ByteSpan) { return Result<void>(); }));
    at += size;
  }
  std::ranges::shuffle(ranges, random);
  return ranges;
}

TEST(Sums, OfRangesInAnyOrderAreThoseOfTheBlocks) {
  testing::Random random(1);
  for (int round = 0; round < 20; ++round) {
    const std::string text = testing::random_bytes(random, 5 * kBlockBytes) + std::string(1, 'x');
    std::vector<ManifestArray> arrays{raw_bytes(text.size(), static_cast<Index>(text.size()))};
    ASSERT_TRUE(join_sums({random_ranges(random, as_bytes(text))}, arrays));
    ASSERT_EQ(arrays[0].sums.lengths(), std::vector<std::uint64_t>{text.size()});
    for (std::uint64_t block = 0; block < arrays[0].sums.crcs().size(); ++block) {
      EXPECT_EQ(arrays[0].sums.crc(0, block),
                crc32c(as_bytes(text.substr(block * kBlockBytes, kBlockBytes))));
    }
  }
}

TEST(Sums, WhatNobodyOrTwoWroteIsRefused) {
  const auto joined = [](std::vector<SummedRange> ranges) {
    std::vector<ManifestArray> arrays{raw_bytes(30, 10)};
    const auto done = join_sums({std::move(ranges)}, arrays);
    return done ? std::string() : std::string(done.error().reason());
  };
  const SummedRange first{.chunk = 0, .begin = 0, .end = 10};
  const SummedRange second{.chunk = 1, .begin = 0, .end = 10};
  const SummedRange third{.chunk = 2, .begin = 0, .end = 10};
  EXPECT_EQ(joined({third, first, second}), "");
  EXPECT_EQ(joined({first, second}), "sums/missing");
  EXPECT_EQ(joined({first, third}), "sums/missing");
  EXPECT_EQ(joined({second, third}), "sums/missing");
  EXPECT_EQ(joined({first, second, third, second}), "sums/twice");
  EXPECT_EQ(joined({first, {.chunk = 1, .begin = 0, .end = 9}, third}), "sums/missing");
  EXPECT_EQ(joined({first, {.chunk = 1, .begin = 1, .end = 10}, third}), "sums/missing");
  EXPECT_EQ(joined({first, second, third, {.chunk = 3, .begin = 0, .end = 10}}), "sums/no-chunk");
  EXPECT_EQ(joined({first, second, third, {.array = 1, .begin = 0, .end = 10}}), "sums/no-array");
}

TEST(Sums, DigestsOfPiecesStandBesideEachOtherAndAloneAsTheWholes) {
  const auto joined = [](std::vector<HashedRange> hashes) {
    std::vector<ManifestArray> arrays{raw_bytes(30, 10)};
    WrittenSums written;
    for (std::uint64_t chunk = 0; chunk < 3; ++chunk)
      written.ranges.push_back({.chunk = chunk, .begin = 0, .end = 10});
    written.hashes = std::move(hashes);
    const auto done = join_sums(std::move(written), arrays);
    if (!done) return std::string(done.error().reason());
    std::string text = arrays[0].sha256.substr(0, 2);
    for (const PieceDigest& piece : arrays[0].pieces)
      text += std::to_string(piece.end) + ":" + std::to_string(int(piece.sha256[0])) + " ";
    return text;
  };
  const auto hash = [](std::uint64_t begin, std::uint64_t end) {
    return HashedRange{.begin = begin, .end = end, .sha256 = {static_cast<std::byte>(end)}};
  };
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined({hash(2, 3), hash(0, 1), hash(1, 2)}), "1:1 2:2 3:3 ");
  EXPECT_EQ(joined({hash(0, 3)}), "03");
  EXPECT_EQ(joined({hash(0, 2)}), "sums/hashes");
  EXPECT_EQ(joined({hash(0, 1), hash(2, 3)}), "sums/hashes");
  EXPECT_EQ(joined({hash(0, 1), hash(0, 1), hash(1, 3)}), "sums/hashes");
  EXPECT_EQ(joined({hash(0, 4)}), "sums/hashes");
  EXPECT_EQ(joined({{.array = 1, .begin = 0, .end = 3}}), "sums/no-array");
}

}  // namespace
}  // namespace cairn
