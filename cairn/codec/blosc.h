// SPDX-License-Identifier: Apache-2.0
// c-blosc 1: blocks that are shuffled, then compressed. It has no checksum.
#pragma once

#include <memory>

#include "cairn/base/json.h"
#include "cairn/codec/codec.h"

namespace cairn::codec {

/// Members: cname (lz4, lz4hc, blosclz, snappy, zlib, zstd; default lz4), clevel (0 to 9, default
/// 5), shuffle (0 none, 1 bytes, 2 bits, -1 auto: bits for items of one byte, else bytes; default
/// -1), blocksize (0 auto). Limit: encodes less than 2 GiB (blosc/too-large).
Result<std::unique_ptr<Codec>> make_blosc(const Json& config, std::size_t item_size);

}  // namespace cairn::codec
