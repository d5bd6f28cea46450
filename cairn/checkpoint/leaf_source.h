// SPDX-License-Identifier: Apache-2.0
// The bytes of one array as a save needs them: cast, gathered from its shards, in C order.
#pragma once

#include "cairn/sharding/sharded_array.h"

namespace cairn::inline checkpoint {

/// A view of a ShardedArray that must outlive it. Threading: safe, each call with a scratch of its
/// own.
class LeafSource {
 public:
  /// Elements come out as `dtype`. REQUIRES: equal to the array's, or can_cast().
  LeafSource(const ShardedArray& array, DType dtype) : array_(array), dtype_(dtype) {}

  DType dtype() const { return dtype_; }

  /// Elements [begin, end) in C order. The caller's own memory if that is what it holds, else
  /// gathered into `scratch`. Elements that no shard here holds are zero.
  Result<ByteSpan> range(std::uint64_t begin, std::uint64_t end, Buffer& scratch) const;

  /// A chunk of `chunk_shape` that begins at `box`; cells outside the box are zero.
  Result<ByteSpan> chunk(const Box& box, const Shape& chunk_shape, Buffer& scratch) const;

  /// Scratch memory that one call for `elements` takes at most.
  std::uint64_t scratch_bytes(std::uint64_t elements) const;

 private:
  void gather(const Box& box, std::byte* to, const Strides& strides) const;
  Result<ByteSpan> cast(Buffer gathered, Buffer& scratch) const;

  const ShardedArray& array_;
  DType dtype_;
};

}  // namespace cairn::inline checkpoint
