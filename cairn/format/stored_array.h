// SPDX-License-Identifier: Apache-2.0
// `StoredArray`: how one array is stored. Formats make it from their metadata, so that planning,
// loading and verifying are independent of the format. `chunk_codec.h` decodes its chunks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/array/array.h"
#include "cairn/format/codec_spec.h"

namespace cairn::format {

/// Largest array, largest raw chunk and largest offset: products and sums of a few sizes below it
/// never wrap around.
constexpr std::uint64_t kMaxArrayBytes = std::uint64_t{1} << 60;

/// A grid of chunks, each of the full chunk shape (cells outside the array are padding), each an
/// object of its own or, for formats that keep an array as one run of bytes, a range of one object.
/// Invariants: chunk_shape.size() == shape.size(), every chunk dimension >= 1, and check_sizes()
/// succeeds: parsers call it. Threading: compatible.
struct StoredArray {
  DType dtype = DType::kFloat32;
  Shape shape;
  Shape chunk_shape;
  bool fortran_order = false;  ///< cells inside a chunk, first index fastest
  bool big_endian = false;
  bool packed = false;  ///< sub-byte elements share bytes (safetensors)
  CodecSpec codec;
  std::string fill;  ///< bytes of one element, little endian; empty: zeros

  std::string key;           ///< directory of the chunks, or the one object
  bool one_object = false;   ///< the array is the range [offset, offset + chunk_bytes()) of `key`
  std::uint64_t offset = 0;  ///< one_object only
  char separator = '.';      ///< between chunk indices: '.' or '/'

  /// Do array, chunk, all chunks together and the offset stay within kMaxArrayBytes? Dimensions of
  /// size zero count as one, so that strides of the others do not overflow either. All other
  /// members and their callers rely on this and check nothing. `corrupt`: array/shape-overflow,
  /// array/chunk-overflow, array/offset-overflow. REQUIRES: the other invariants; no negative size.
  Result<void> check_sizes() const;
  /// Chunks along each dimension.
  Shape grid() const;
  std::uint64_t chunk_count() const;
  /// Grid position of the n-th chunk, in C order. REQUIRES: n < chunk_count().
  Shape chunk_position(std::uint64_t n) const;
  /// The part of the n-th chunk inside the array.
  Box chunk_box(std::uint64_t n) const;
  /// The chunks that overlap a box of the array, ascending.
  std::vector<std::uint64_t> chunks_of(const Box& box) const;
  /// "0.1", "0/1", "0" at rank 0: the chunk's name below `key`.
  std::string chunk_name(std::uint64_t n) const;
  /// Object that holds the n-th chunk.
  std::string chunk_key(std::uint64_t n) const;
  /// Bytes of one chunk before the codec (packed where packed).
  std::uint64_t chunk_bytes() const;
  /// The same in memory, at least one byte for each element.
  std::uint64_t chunk_memory_bytes() const;
  /// Byte steps inside a decoded chunk.
  Strides chunk_strides() const;
  /// Stored bytes equal the elements in memory, so parts of a chunk can be read alone. Not so for
  /// bool and sub-byte types, whose bytes must be checked or masked.
  bool plain() const;
};

/// Fills a decoded chunk (or any run of elements) with the fill value, the content of a missing
/// chunk.
void fill_cells(const StoredArray& array, MutableByteSpan cells);

}  // namespace cairn::format
