// SPDX-License-Identifier: Apache-2.0
// The bytes of one array as a save needs them: in C order, as the type that is stored.
#pragma once

#include <memory>

#include "cairn/sharding/sharded_array.h"

namespace cairn {

class Runtime;

/// Source of the elements of an array. Threading: safe, if each call has its own scratch.
class LeafSource {
 public:
  virtual ~LeafSource() = default;

  /// Elements [begin, end) in C order. Existing memory is not copied; elements that must be
  /// converted are placed in `scratch`, which is reused if it is large enough.
  virtual Result<ByteSpan> range(std::uint64_t begin, std::uint64_t end, Buffer& scratch) const = 0;
  /// A chunk of `chunk_shape` that begins at `box`; cells outside the box are zero.
  virtual Result<ByteSpan> chunk(const Box& box, const Shape& chunk_shape,
                                 Buffer& scratch) const = 0;
  /// Most scratch memory of one call for `elements`.
  virtual std::uint64_t scratch_bytes(std::uint64_t elements) const = 0;
  /// Nobody will change what it reads, so it can be called later as well.
  virtual bool immutable() const = 0;
};

/// The first `bytes` of `scratch`, which is allocated if it has fewer.
Result<MutableByteSpan> scratch_of(Buffer& scratch, std::uint64_t bytes);

/// The caller's arrays, gathered from their shards and cast to `dtype`. Elements that no shard here
/// holds are zero. REQUIRES: `dtype` is the array's, or can_cast().
std::shared_ptr<const LeafSource> memory_source(ShardedArray array, DType dtype);

}  // namespace cairn
