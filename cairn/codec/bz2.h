// SPDX-License-Identifier: Apache-2.0
// bzip2: one stream a chunk.
#pragma once

#include <memory>

#include "cairn/base/json.h"
#include "cairn/codec/codec.h"

namespace cairn::codec {

/// Member: level (1 to 9, default 1).
Result<std::unique_ptr<Codec>> make_bz2(const Json& config, std::size_t item_size);

}  // namespace cairn::codec
