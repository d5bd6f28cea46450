// SPDX-License-Identifier: Apache-2.0
// Bytes as text: base64 (RFC 4648, padded) and lower-case hex.
#pragma once

#include <string>
#include <string_view>

#include "cairn/base/bytes.h"
#include "cairn/base/result.h"

namespace cairn {

std::string encode_base64(ByteSpan bytes);
/// The decoded bytes, as text. `corrupt` (base64/invalid) unless it is canonical padded base64.
Result<std::string> decode_base64(std::string_view text);

std::string encode_hex(ByteSpan bytes);
/// `corrupt` (hex/invalid) for an odd number of digits or another character.
Result<std::string> decode_hex(std::string_view text);

}  // namespace cairn
