// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/buffer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace cairn {
namespace {

std::size_t misalignment(const Buffer& buffer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment;
}

TEST(Buffer, AllocatesAlignedBytesOfAnySize) {
  for (const std::size_t size : {0u, 1u, 63u, 64u, 4095u, 4096u, 4097u, 1u << 20}) {
    Result<Buffer> buffer = Buffer::allocate(size);
    ASSERT_TRUE(buffer) << size;
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(misalignment(*buffer, size >= Buffer::kAlignment ? Buffer::kAlignment : 64), 0u)
        << size;
    EXPECT_FALSE(buffer->immutable());
    std::ranges::fill(buffer->mutable_bytes(), std::byte{0xab});
  }
}

TEST(Buffer, ZerosAreZero) {
  for (const std::size_t size : {0u, 1u, 5000u}) {
    const Result<Buffer> buffer = Buffer::zeros(size);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer->size(), size);
    EXPECT_TRUE(
        std::ranges::all_of(buffer->bytes(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(Buffer, RefusesWhatNoMachineHas) {
  for (const std::size_t size : {std::numeric_limits<std::size_t>::max(), std::size_t{1} << 60}) {
    const Result<Buffer> buffer = Buffer::allocate(size);
    ASSERT_FALSE(buffer);
    EXPECT_EQ(buffer.error().code(), Code::kResourceExhausted);
    EXPECT_EQ(buffer.error().reason(), "base/out-of-memory");
    EXPECT_FALSE(Buffer::zeros(size));
  }
}

TEST(Buffer, CopiesAndSlicesShareTheBytesAndKeepThemAlive) {
  Buffer part;
  {
    Buffer whole = Buffer::own("hello, cairn");
    part = whole.slice(7, 5);
    const Buffer copy = whole;
    whole.mutable_bytes()[7] = std::byte{'C'};
    EXPECT_EQ(as_text(copy.bytes()), "hello, Cairn");
  }
  EXPECT_EQ(as_text(part.bytes()), "Cairn");
  EXPECT_TRUE(part.slice(5, 0).empty());
}

TEST(Buffer, HoldsItsOwnerUntilTheLastCopyGoes) {
  auto owner = std::make_shared<std::vector<std::byte>>(16);
  const std::weak_ptr<std::vector<std::byte>> watch = owner;
  Buffer loan = Buffer::lend(*owner, owner);
  Buffer part = loan.slice(4, 4);
  owner.reset();
  loan = Buffer();
  EXPECT_FALSE(watch.expired());
  part = Buffer();
  EXPECT_TRUE(watch.expired());
}

TEST(Buffer, OnlyALoanIsImmutable) {
  std::vector<std::byte> bytes(8);
  EXPECT_TRUE(Buffer::lend(bytes, nullptr).immutable());
  EXPECT_TRUE(Buffer::lend(bytes, nullptr).slice(2, 2).immutable());
  EXPECT_FALSE(Buffer::own("text").immutable());
  Buffer borrowed = Buffer::borrow(bytes, nullptr);
  EXPECT_FALSE(borrowed.immutable());
  borrowed.mutable_bytes()[3] = std::byte{9};
  EXPECT_EQ(bytes[3], std::byte{9});
}

}  // namespace
}  // namespace cairn
