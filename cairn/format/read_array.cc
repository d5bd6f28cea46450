// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/read_array.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/array/array.h"
#include "cairn/array/strided_copy.h"
#include "cairn/base/checked.h"
#include "cairn/base/human.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/expansion.h"

namespace cairn::format {
namespace {

bool reads_as_fill(const StoredArray& array, const Error& error) {
  return error.code() == Code::kNotFound && !array.one_object;
}

// Bytes of the object that belong to the array: all, or what is there of its range.
std::uint64_t stored_bytes(const StoredArray& array, std::uint64_t object_bytes) {
  if (!array.one_object) return object_bytes;
  return std::min(array.chunk_bytes(), object_bytes - std::min(object_bytes, array.offset));
}

Result<void> check_limit(const StoredArray& array, std::uint64_t limit) {
  CAIRN_TRY_ASSIGN(const std::uint64_t elements, element_count(array.shape));
  const auto bytes = checked_mul<std::uint64_t>(elements, item_size(array.dtype));
  if (bytes && *bytes <= limit) return {};
  return Error(Code::kResourceExhausted, "format/array-too-large",
               fmt::format("an array of {} elements of {} is more than the {} to be read at once",
                           elements, dtype_name(array.dtype), format_bytes(limit)));
}

Result<void> check_stored_sizes(storage::Store& store, const StoredArray& array) {
  for (std::uint64_t n = 0; n < array.chunk_count(); ++n) {
    const std::string key = array.chunk_key(n);
    const auto info = store.stat(key);
    if (!info && reads_as_fill(array, info.error())) continue;
    if (!info) return info.error();
    CAIRN_TRY(check_expansion(array, stored_bytes(array, info->size)).in([&] {
      return store.describe(key);
    }));
  }
  return {};
}

Result<Array> allocate_filled(const StoredArray& array) {
  if (array.fill.empty()) return Array::zeros(array.dtype, array.shape);
  CAIRN_TRY_ASSIGN(Array filled, Array::allocate(array.dtype, array.shape));
  fill_cells(array, filled.mutable_bytes());
  return filled;
}

Result<Buffer> read_stored(storage::ObjectReader& object, const StoredArray& array) {
  const std::uint64_t size = stored_bytes(array, object.size());
  CAIRN_TRY(check_expansion(array, size));
  CAIRN_TRY_ASSIGN(Buffer stored, Buffer::allocate(size));
  CAIRN_TRY(object.read_at(array.one_object ? array.offset : 0, stored.mutable_bytes()));
  return stored;
}

Result<void> copy_chunk(storage::ObjectReader& object, const StoredArray& array,
                        const ChunkCodec& codec, Array to) {
  CAIRN_TRY_ASSIGN(const Buffer stored, read_stored(object, array));
  CAIRN_TRY_ASSIGN(Buffer cells, Buffer::allocate(array.chunk_memory_bytes()));
  CAIRN_TRY(codec.decode(stored.bytes(), cells.mutable_bytes()));
  const Strides strides = array.chunk_strides();
  copy_strided(to.shape(), item_size(array.dtype), {cells.data(), &strides},
               {to.mutable_data(), &to.strides()});
  return {};
}

}  // namespace

Result<Array> read_array(storage::Store& store, const StoredArray& array, std::uint64_t limit) {
  CAIRN_TRY_ASSIGN(const ChunkCodec codec, ChunkCodec::make(array));
  CAIRN_TRY(check_limit(array, limit));
  CAIRN_TRY(check_stored_sizes(store, array));
  CAIRN_TRY_ASSIGN(Array result, allocate_filled(array));
  for (std::uint64_t n = 0; n < array.chunk_count(); ++n) {
    const std::string key = array.chunk_key(n);
    const auto object = store.open(key);
    if (!object && reads_as_fill(array, object.error())) continue;
    if (!object) return object.error();
    CAIRN_TRY(copy_chunk(**object, array, codec, result.slice(array.chunk_box(n))).in([&] {
      return store.describe(key);
    }));
  }
  return result;
}

}  // namespace cairn::format
