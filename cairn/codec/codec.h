// SPDX-License-Identifier: Apache-2.0
// Compression of one chunk. `registry.h` makes codecs by name.
#pragma once

#include "cairn/base/buffer.h"

namespace cairn::codec {

/// Stateless between calls. Threading: safe.
class Codec {
 public:
  virtual ~Codec() = default;

  /// One stream or frame that every peer of the format reads.
  virtual Result<Buffer> encode(ByteSpan raw) const = 0;

  /// Fills `out` exactly. `stored` is hostile: its sizes are not trusted, nothing is allocated from
  /// them, and output beyond `out` is an error. `corrupt` with reasons <codec>/truncated,
  /// <codec>/trailing-bytes (input left over, a second stream), <codec>/too-short, <codec>/too-long
  /// (fewer or more bytes than `out`), <codec>/invalid (anything else), <codec>/checksum.
  virtual Result<void> decode(ByteSpan stored, MutableByteSpan out) const = 0;
};

}  // namespace cairn::codec
