// SPDX-License-Identifier: Apache-2.0
// DEFLATE in its two wrappings: gzip (RFC 1952) and zlib (RFC 1950).
#pragma once

#include <memory>

#include "cairn/base/json.h"
#include "cairn/codec/codec.h"

namespace cairn::codec {

/// Member: level (0 to 9, default 1).
Result<std::unique_ptr<Codec>> make_gzip(const Json& config, std::size_t item_size);
Result<std::unique_ptr<Codec>> make_zlib(const Json& config, std::size_t item_size);

}  // namespace cairn::codec
