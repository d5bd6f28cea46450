// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/stored_array.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "cairn/array/flat_range.h"
#include "cairn/base/checked.h"
#include "cairn/base/human.h"
#include "cairn/base/uri.h"

namespace cairn::format {
namespace {

std::uint64_t product(const Shape& shape) {
  std::uint64_t count = 1;
  for (Index size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

// Of so many elements or chunks, each of `bytes`; nothing above kMaxArrayBytes.
std::optional<std::uint64_t> bytes_of(const Shape& shape, std::uint64_t bytes) {
  std::optional<std::uint64_t> total = bytes;
  for (const Index size : shape) {
    if (total) total = checked_mul(*total, static_cast<std::uint64_t>(std::max<Index>(size, 1)));
  }
  return total && *total <= kMaxArrayBytes ? total : std::nullopt;
}

Error too_large(const char* reason, std::string what) {
  return Error(Code::kCorrupt, reason,
               fmt::format("{} is larger than {}", what, format_bytes(kMaxArrayBytes)));
}

}  // namespace

Result<void> StoredArray::check_sizes() const {
  if (!bytes_of(shape, item_size(dtype))) {
    return too_large("array/shape-overflow", "an array of shape " + to_string(shape));
  }
  const auto chunk = bytes_of(chunk_shape, item_size(dtype));
  if (!chunk) {
    return too_large("array/chunk-overflow", "a chunk of shape " + to_string(chunk_shape));
  }
  if (!bytes_of(grid(), *chunk)) {
    return too_large("array/chunk-overflow", fmt::format("shape {} in whole chunks of {}",
                                                         to_string(shape), to_string(chunk_shape)));
  }
  if (offset > kMaxArrayBytes) {
    return too_large("array/offset-overflow", fmt::format("the offset {}", offset));
  }
  return {};
}

Shape StoredArray::grid() const {
  Shape counts(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) counts[i] = ceil_div(shape[i], chunk_shape[i]);
  return counts;
}

std::uint64_t StoredArray::chunk_count() const { return product(grid()); }

Shape StoredArray::chunk_position(std::uint64_t n) const { return index_at(grid(), n); }

Box StoredArray::chunk_box(std::uint64_t n) const {
  Box box{.begin = chunk_position(n), .end = {}};
  box.end.resize(box.begin.size());
  for (std::size_t i = 0; i < box.begin.size(); ++i) {
    box.begin[i] *= chunk_shape[i];
    box.end[i] = box.begin[i] + std::min(chunk_shape[i], shape[i] - box.begin[i]);
  }
  return box;
}

std::vector<std::uint64_t> StoredArray::chunks_of(const Box& box) const {
  if (box.empty()) return {};
  const Shape counts = grid();
  // The chunks of the first d dimensions, as numbers of that smaller grid.
  std::vector<std::uint64_t> chunks{0};
  for (std::size_t d = 0; d < counts.size(); ++d) {
    const auto first = static_cast<std::uint64_t>(box.begin[d] / chunk_shape[d]);
    const auto last = static_cast<std::uint64_t>((box.end[d] - 1) / chunk_shape[d]);
    std::vector<std::uint64_t> finer;
    finer.reserve(chunks.size() * (last - first + 1));
    for (const std::uint64_t outer : chunks) {
      for (std::uint64_t at = first; at <= last; ++at) {
        finer.push_back(outer * static_cast<std::uint64_t>(counts[d]) + at);
      }
    }
    chunks = std::move(finer);
  }
  return chunks;
}

std::string StoredArray::chunk_name(std::uint64_t n) const {
  if (shape.empty()) return "0";
  std::string name;
  for (Index index : chunk_position(n)) {
    if (!name.empty()) name += separator;
    name += std::to_string(index);
  }
  return name;
}

std::string StoredArray::chunk_key(std::uint64_t n) const {
  if (one_object) return key;
  return join_path(key, chunk_name(n));
}

std::uint64_t StoredArray::chunk_bytes() const {
  if (!packed) return chunk_memory_bytes();
  const std::uint64_t elements = product(chunk_shape);
  const auto bits = static_cast<std::uint64_t>(bit_width(dtype));
  return elements / 8 * bits + ceil_div(elements % 8 * bits, std::uint64_t{8});
}

std::uint64_t StoredArray::chunk_memory_bytes() const {
  return product(chunk_shape) * item_size(dtype);
}

Strides StoredArray::chunk_strides() const {
  return fortran_order ? fortran_strides(chunk_shape, item_size(dtype))
                       : dense_strides(chunk_shape, item_size(dtype));
}

bool StoredArray::plain() const {
  return codec.is_raw() && !big_endian && !packed && dtype != DType::kBool && bit_width(dtype) >= 8;
}

void fill_cells(const StoredArray& array, MutableByteSpan cells) {
  const std::string& fill = array.fill;
  if (cells.empty()) return;
  if (std::ranges::all_of(fill, [&](char c) { return c == fill.front(); })) {
    std::memset(cells.data(), fill.empty() ? 0 : fill.front(), cells.size());
    return;
  }
  std::memcpy(cells.data(), fill.data(), fill.size());
  for (std::size_t done = fill.size(); done < cells.size();) {
    const std::size_t part = std::min(done, cells.size() - done);
    std::memcpy(cells.data() + done, cells.data(), part);
    done += part;
  }
}

}  // namespace cairn::format
