// SPDX-License-Identifier: Apache-2.0
// Reads the header of a safetensors file from hostile bytes, with the checks of the format's own
// library.
#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/format/safetensors/header.h"

namespace cairn::format::safetensors {

/// Length of the JSON, from the first 8 bytes (fewer where the file is shorter) and the size of the
/// file. `corrupt`: safetensors/header-too-small, safetensors/header-too-large,
/// safetensors/header-length.
Result<std::uint64_t> parse_header_length(ByteSpan first8, std::uint64_t file_size);

/// Pure. `json` is what follows the length. All checks of the library, each with a reason of its
/// own: `corrupt`, or `unimplemented` for a valid tensor of too many dimensions (safetensors/rank).
Result<Header> parse_header(std::string_view json, std::uint64_t file_size);

}  // namespace cairn::format::safetensors
