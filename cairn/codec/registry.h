// SPDX-License-Identifier: Apache-2.0
// Codecs by the name and parameters that zarr v2 metadata uses. One row a codec in registry.cc.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/codec/codec.h"

namespace cairn::codec {

/// `config` is a zarr v2 compressor object, {"id": "zstd", "level": 1}; `item_size` is for codecs
/// that shuffle. `invalid_argument` (metadata is refused before data is read): codec/not-an-object,
/// codec/no-id, codec/unknown (with the list of those there are), codec/bad-parameter (unknown
/// member, wrong type, out of range).
Result<std::unique_ptr<Codec>> make_codec(const Json& config, std::size_t item_size);

/// Names, sorted.
std::vector<std::string_view> codec_names();

}  // namespace cairn::codec
