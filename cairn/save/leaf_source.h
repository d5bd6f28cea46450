// SPDX-License-Identifier: Apache-2.0
// The bytes of one array as a save needs them: in C order, as the type that is stored.
#pragma once

#include <memory>

#include "cairn/sharding/sharded_array.h"

namespace cairn {

class Runtime;

/// Where the elements of an array come from. Threading: safe, each call with a scratch of its own.
class LeafSource {
 public:
  virtual ~LeafSource() = default;

  /// Elements [begin, end) in C order. Memory that is there already is not copied; what must be
  /// made lies in `scratch`, which is used as it is if it is large enough.
  virtual Result<ByteSpan> range(std::uint64_t begin, std::uint64_t end, Buffer& scratch) const = 0;
  /// A chunk of `chunk_shape` that begins at `box`; cells outside the box are zero.
  virtual Result<ByteSpan> chunk(const Box& box, const Shape& chunk_shape,
                                 Buffer& scratch) const = 0;
  /// Scratch memory that one call for `elements` takes at most.
  virtual std::uint64_t scratch_bytes(std::uint64_t elements) const = 0;
  /// Nobody will change what it reads: it can be called later as well.
  virtual bool immutable() const = 0;
};

/// The first `bytes` of `scratch`, which is allocated if it has fewer.
Result<MutableByteSpan> scratch_of(Buffer& scratch, std::uint64_t bytes);

/// The caller's arrays, gathered from their shards and cast to `dtype`. Elements that no shard here
/// holds are zero. REQUIRES: `dtype` is the array's, or can_cast().
std::shared_ptr<const LeafSource> memory_source(ShardedArray array, DType dtype);

}  // namespace cairn
