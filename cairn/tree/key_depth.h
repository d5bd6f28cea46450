// SPDX-License-Identifier: Apache-2.0
// Limits on names of leaves, and names in messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

/// Most parts of a name from outside, because code that walks down a name may recurse.
constexpr std::size_t kMaxKeyParts = 1000;
/// Longest part of such a name. Each leaf below it stores a copy.
constexpr std::size_t kMaxKeyPartBytes = std::size_t{64} << 10;

/// `invalid_argument` (keypath/too-deep) for a name of more than kMaxKeyParts parts. `name` is for
/// the message.
Result<void> check_key_depth(std::size_t parts, std::string_view name);

/// The name, cut with "..." if it is long, between characters.
std::string shortened_name(std::string_view name);

}  // namespace cairn
