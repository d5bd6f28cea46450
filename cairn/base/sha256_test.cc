// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/sha256.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace cairn {
namespace {

// FIPS 180-4 examples, and the empty text.
const std::pair<std::string, std::string> kVectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

TEST(Sha256, GivesThePublishedDigests) {
  for (const auto& [bytes, digest] : kVectors) EXPECT_EQ(sha256_hex(as_bytes(bytes)), digest);
}

TEST(Sha256, TakesItsBytesInPieces) {
  for (const auto& [bytes, digest] : kVectors) {
    Sha256 begun;
    const ByteSpan all = as_bytes(bytes);
    begun.update(all.first(all.size() / 3));
    Sha256 sum = std::move(begun);
    sum.update(all.subspan(all.size() / 3));
    EXPECT_EQ(sum.hex(), digest);
  }
}

}  // namespace
}  // namespace cairn
