// SPDX-License-Identifier: Apache-2.0
// A copy is a nest of loops over (size, step in `from`, step in `to`). The nest is first made small
// and cheap - the order of elements does not matter, so loops may be turned, swapped and merged -
// and the two innermost loops then run in a kernel for the item size.
#include "cairn/array/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

namespace cairn {
namespace {

struct Loop {
  Index size = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

struct Nest {
  std::array<Loop, kMaxRank> loops;  // outermost first
  std::size_t rank = 0;
  std::size_t item = 0;  // bytes copied at once
  const std::byte* from = nullptr;
  std::byte* to = nullptr;

  std::span<Loop> active() { return std::span(loops).first(rank); }
};

// Loops of more than one turn, all walking forward in `to`.
Nest make_nest(const Shape& shape, std::size_t item, ConstStridedSpan from, StridedSpan to) {
  Nest nest;
  nest.item = item;
  nest.from = from.data;
  nest.to = to.data;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    Loop loop{shape[i], (*from.strides)[i], (*to.strides)[i]};
    if (loop.to < 0) {
      nest.from += (loop.size - 1) * loop.from;
      nest.to += (loop.size - 1) * loop.to;
      loop.from = -loop.from;
      loop.to = -loop.to;
    }
    nest.loops[nest.rank++] = loop;
  }
  return nest;
}

// Merges loops that continue each other on both sides, and the innermost ones into the item.
void merge(Nest& nest) {
  std::size_t rank = 0;
  for (const Loop& inner : nest.active()) {
    Loop& outer = nest.loops[rank == 0 ? 0 : rank - 1];
    if (rank > 0 && outer.from == inner.from * inner.size && outer.to == inner.to * inner.size) {
      outer = {outer.size * inner.size, inner.from, inner.to};
    } else {
      nest.loops[rank++] = inner;
    }
  }
  nest.rank = rank;
  const auto item = static_cast<std::int64_t>(nest.item);
  if (rank > 0 && nest.loops[rank - 1].from == item && nest.loops[rank - 1].to == item) {
    nest.item *= static_cast<std::size_t>(nest.loops[rank - 1].size);
    --nest.rank;
  }
}

// Writes run forward through memory.
void order(Nest& nest) {
  const auto loops = nest.active();
  std::sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.to > b.to; });
}

// In a transposition, the loop that reads neighbours goes next to the one that writes them, so that
// the kernel's tiles use whole cache lines on both sides.
void pair_for_tiles(Nest& nest) {
  if (nest.rank < 3) return;
  const auto outer = nest.active().first(nest.rank - 1);
  const auto nearest = std::min_element(
      outer.begin(), outer.end(),
      [](const Loop& a, const Loop& b) { return std::abs(a.from) < std::abs(b.from); });
  if (std::abs(nearest->from) >= std::abs(nest.loops[nest.rank - 1].from)) return;
  std::rotate(nearest, nearest + 1, outer.end());
}

// Elements; a tile reads and writes a few dozen cache lines.
constexpr Index kTileRows = 32;
constexpr Index kTileColumns = 16;

template <std::size_t kItem>
void copy_row(const Loop& loop, Index count, const std::byte* from, std::byte* to) {
  for (Index i = 0; i < count; ++i) std::memcpy(to + i * loop.to, from + i * loop.from, kItem);
}

template <std::size_t kItem>
void copy_plane(const Loop& outer, const Loop& inner, const std::byte* from, std::byte* to) {
  const bool turned = outer.size > 1 && std::abs(outer.from) < std::abs(inner.from);
  const Index width = turned ? kTileColumns : inner.size;
  for (Index row = 0; row < outer.size; row += kTileRows) {
    const Index row_end = std::min(outer.size, row + kTileRows);
    for (Index column = 0; column < inner.size; column += width) {
      const Index columns = std::min(width, inner.size - column);
      for (Index i = row; i < row_end; ++i) {
        copy_row<kItem>(inner, columns, from + i * outer.from + column * inner.from,
                        to + i * outer.to + column * inner.to);
      }
    }
  }
}

void copy_runs(const Nest& nest, const Loop& outer, const Loop& inner, const std::byte* from,
               std::byte* to) {
  for (Index i = 0; i < outer.size; ++i) {
    for (Index j = 0; j < inner.size; ++j) {
      std::memcpy(to + i * outer.to + j * inner.to, from + i * outer.from + j * inner.from,
                  nest.item);
    }
  }
}

void copy_kernel(const Nest& nest, const Loop& outer, const Loop& inner, const std::byte* from,
                 std::byte* to) {
  switch (nest.item) {
    case 1:
      return copy_plane<1>(outer, inner, from, to);
    case 2:
      return copy_plane<2>(outer, inner, from, to);
    case 4:
      return copy_plane<4>(outer, inner, from, to);
    case 8:
      return copy_plane<8>(outer, inner, from, to);
    case 16:
      return copy_plane<16>(outer, inner, from, to);
    default:
      return copy_runs(nest, outer, inner, from, to);
  }
}

void copy_nest(const Nest& nest, std::size_t depth, const std::byte* from, std::byte* to) {
  const std::size_t left = nest.rank - depth;
  if (left <= 2) {
    const Loop outer = left == 2 ? nest.loops[depth] : Loop{};
    const Loop inner = left >= 1 ? nest.loops[nest.rank - 1] : Loop{};
    return copy_kernel(nest, outer, inner, from, to);
  }
  const Loop& loop = nest.loops[depth];
  for (Index i = 0; i < loop.size; ++i) {
    copy_nest(nest, depth + 1, from + i * loop.from, to + i * loop.to);
  }
}

template <typename Word>
void swap_words(MutableByteSpan bytes) {
  for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(bytes.data() + at, &word, sizeof(Word));
  }
}

}  // namespace

std::int64_t byte_offset(const Shape& index, const Strides& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

void copy_strided(const Shape& shape, std::size_t item_size, ConstStridedSpan from,
                  StridedSpan to) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  Nest nest = make_nest(shape, item_size, from, to);
  order(nest);
  merge(nest);
  pair_for_tiles(nest);
  copy_nest(nest, 0, nest.from, nest.to);
}

void swap_byte_order(DType dtype, MutableByteSpan bytes) {
  const bool halves = dtype_kind(dtype) == DTypeKind::kComplex;
  switch (halves ? item_size(dtype) / 2 : item_size(dtype)) {
    case 2:
      return swap_words<std::uint16_t>(bytes);
    case 4:
      return swap_words<std::uint32_t>(bytes);
    case 8:
      return swap_words<std::uint64_t>(bytes);
    default:
      return;
  }
}

void pack_bits(int bits, ByteSpan from, MutableByteSpan to) {
  const unsigned mask = (1U << bits) - 1;
  unsigned waiting = 0;
  int filled = 0;
  std::byte* next = to.data();
  for (const std::byte element : from) {
    waiting |= (std::to_integer<unsigned>(element) & mask) << filled;
    filled += bits;
    if (filled < 8) continue;
    *next++ = static_cast<std::byte>(waiting & 0xFF);
    waiting >>= 8;
    filled -= 8;
  }
  if (filled > 0) *next = static_cast<std::byte>(waiting);
}

void unpack_bits(int bits, ByteSpan from, std::uint64_t first_bit, MutableByteSpan to) {
  const unsigned mask = (1U << bits) - 1;
  std::uint64_t bit = first_bit;
  for (std::byte& element : to) {
    const auto at = static_cast<std::size_t>(bit / 8);
    const auto shift = static_cast<int>(bit % 8);
    unsigned word = std::to_integer<unsigned>(from[at]);
    if (shift + bits > 8) word |= std::to_integer<unsigned>(from[at + 1]) << 8;
    element = static_cast<std::byte>((word >> shift) & mask);
    bit += static_cast<std::uint64_t>(bits);
  }
}

}  // namespace cairn
