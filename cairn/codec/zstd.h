// SPDX-License-Identifier: Apache-2.0
// Zstandard: one frame a chunk.
#pragma once

#include <memory>

#include "cairn/base/json.h"
#include "cairn/codec/codec.h"

namespace cairn::codec {

/// Members: level (-131072 to 22, default 1), checksum (false). Errors as registry.h, as for all
/// codecs.
Result<std::unique_ptr<Codec>> make_zstd(const Json& config, std::size_t item_size);

}  // namespace cairn::codec
