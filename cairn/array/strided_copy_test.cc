// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/strided_copy.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "cairn/array/array.h"

namespace cairn {
namespace {

/// Strides that give every element a place of its own: dimensions nested in random order, with
/// gaps, some of them walked backwards. `data_at` is where index 0 lies, `size` what they reach
/// over.
struct Layout {
  Strides strides;
  std::size_t data_at = 0;
  std::size_t size = 0;
};

Layout random_layout(std::mt19937& random, const Shape& shape, std::size_t item) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
  Layout layout{Strides(shape.size()), 0, item};
  for (const std::size_t dim : order) {
    const std::size_t gap = random() % 3 == 0 ? random() % 5 : 0;
    const std::size_t step = layout.size + gap;
    const auto reach = step * static_cast<std::size_t>(shape[dim] - 1);
    const bool backward = random() % 4 == 0;
    layout.strides[dim] = static_cast<std::int64_t>(step) * (backward ? -1 : 1);
    layout.data_at += backward ? reach : 0;
    layout.size += reach;
  }
  return layout;
}

Shape random_shape(std::mt19937& random) {
  Shape shape(random() % 7);
  for (Index& size : shape) size = static_cast<Index>(1 + random() % (random() % 8 == 0 ? 70 : 5));
  while (*element_count(shape) > 20000) *std::max_element(shape.begin(), shape.end()) = 1;
  return shape;
}

std::string random_text(std::mt19937& random, std::size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

/// The slow way: byte by byte, from the definition of strides.
void copy_slowly(const Shape& shape, std::size_t item, const std::byte* from,
                 const Strides& from_strides, std::byte* to, const Strides& to_strides) {
  const std::uint64_t count = *element_count(shape);
  for (std::uint64_t n = 0; n < count; ++n) {
    std::int64_t read = 0;
    std::int64_t write = 0;
    std::uint64_t rest = n;
    for (std::size_t dim = shape.size(); dim-- > 0;) {
      const auto size = static_cast<std::uint64_t>(shape[dim]);
      read += static_cast<std::int64_t>(rest % size) * from_strides[dim];
      write += static_cast<std::int64_t>(rest % size) * to_strides[dim];
      rest /= size;
    }
    for (std::size_t byte = 0; byte < item; ++byte) {
      to[write + static_cast<std::int64_t>(byte)] = from[read + static_cast<std::int64_t>(byte)];
    }
  }
}

std::byte* bytes_of(std::string& text) { return reinterpret_cast<std::byte*>(text.data()); }

TEST(StridedCopy, CopiesWhatAnElementByElementCopyDoes) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const Shape shape = random_shape(random);
    const std::size_t items[] = {1, 2, 3, 4, 8, 12, 16};
    const std::size_t item = items[random() % std::size(items)];
    Layout from = random_layout(random, shape, item);
    const Layout to = random_layout(random, shape, item);
    if (random() % 8 == 0 && !shape.empty() && from.strides[0] > 0) from.strides[0] = 0;
    std::string source = random_text(random, from.size);
    std::string fast = random_text(random, to.size);
    std::string slow = fast;
    const std::byte* first = bytes_of(source) + from.data_at;
    copy_strided(shape, item, {first, &from.strides}, {bytes_of(fast) + to.data_at, &to.strides});
    copy_slowly(shape, item, first, from.strides, bytes_of(slow) + to.data_at, to.strides);
    ASSERT_EQ(fast, slow) << "round " << round << ", shape " << to_string(shape) << ", from "
                          << to_string(from.strides) << ", to " << to_string(to.strides);
  }
}

TEST(StridedCopy, TransposesMoreThanATileInBothDirections) {
  for (const std::size_t item : {1U, 2U, 4U, 8U, 16U}) {
    const Shape shape = {67, 131};
    const Strides rows = dense_strides(shape, item);
    const Strides columns = fortran_strides(shape, item);
    std::mt19937 random(2);
    std::string source = random_text(random, 67 * 131 * item);
    std::string turned(source.size(), '\0');
    std::string back(source.size(), '\0');
    copy_strided(shape, item, {bytes_of(source), &rows}, {bytes_of(turned), &columns});
    EXPECT_EQ(turned.substr(item, item), source.substr(131 * item, item));
    copy_strided(shape, item, {bytes_of(turned), &columns}, {bytes_of(back), &rows});
    EXPECT_EQ(back, source);
  }
}

TEST(StridedCopy, CopiesNothingOfAnEmptyShape) {
  const Strides strides = {1, 1};
  copy_strided({5, 0}, 4, {nullptr, &strides}, {nullptr, &strides});
}

TEST(StridedCopy, TakesTheLargestRank) {
  const Shape shape(kMaxRank, 1);
  Shape two = shape;
  two.front() = two.back() = 2;
  const Strides from = dense_strides(two, 1);
  const Strides to = fortran_strides(two, 1);
  std::string source = "abcd";
  std::string target = "....";
  copy_strided(two, 1, {bytes_of(source), &from}, {bytes_of(target), &to});
  EXPECT_EQ(target, "acbd");
}

std::string swapped(DType dtype, std::string bytes) {
  swap_byte_order(dtype, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(SwapByteOrder, ReversesEachElementOrEachHalf) {
  EXPECT_EQ(swapped(DType::kUint8, "abcd"), "abcd");
  EXPECT_EQ(swapped(DType::kInt4, "abcd"), "abcd");
  EXPECT_EQ(swapped(DType::kBfloat16, "abcd"), "badc");
  EXPECT_EQ(swapped(DType::kInt32, "abcdefgh"), "dcbahgfe");
  EXPECT_EQ(swapped(DType::kFloat64, "abcdefgh"), "hgfedcba");
  EXPECT_EQ(swapped(DType::kComplex64, "abcdefgh"), "dcbahgfe");
  EXPECT_EQ(swapped(DType::kComplex128, "abcdefghijklmnop"), "hgfedcbaponmlkji");
  EXPECT_EQ(swapped(DType::kFloat32, ""), "");
}

std::string packed(int bits, const std::string& elements) {
  std::string bytes((elements.size() * static_cast<std::size_t>(bits) + 7) / 8, '\x7f');
  pack_bits(bits, as_bytes(elements), std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(PackBits, PutsTheFirstElementLowest) {
  EXPECT_EQ(packed(4, "\x1\x2\x3"), "\x21\x03");
  EXPECT_EQ(packed(2, "\x3\x1\x2\x1\x3"), "\x67\x03");
  EXPECT_EQ(packed(6, "\x3f\x01\x3e\x2a"), "\x7f\xe0\xab");
  EXPECT_EQ(packed(4, ""), "");
}

TEST(PackBits, IgnoresHighBits) { EXPECT_EQ(packed(4, "\xf1\xf2"), "\x21"); }

TEST(PackBits, AreUnpackedFromAnywhere) {
  std::mt19937 random(3);
  for (const int bits : {2, 4, 6}) {
    for (std::size_t count = 0; count < 20; ++count) {
      std::string elements = random_text(random, count);
      for (char& c : elements) c = static_cast<char>(c & ((1 << bits) - 1));
      const std::string bytes = packed(bits, elements);
      for (std::size_t skip = 0; skip <= count; ++skip) {
        std::string back(count - skip, '\x7f');
        unpack_bits(bits, as_bytes(bytes), skip * static_cast<std::size_t>(bits),
                    std::as_writable_bytes(std::span(back)));
        EXPECT_EQ(back, elements.substr(skip)) << bits << " bits, from element " << skip;
      }
    }
  }
}

}  // namespace
}  // namespace cairn
