// SPDX-License-Identifier: Apache-2.0
// How long names of leaves may be, and how they stand in messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

/// Most parts of a name that comes from outside: what walks down a name may recurse.
constexpr std::size_t kMaxKeyParts = 1000;
/// Longest part of such a name. Each leaf below has a copy of it.
constexpr std::size_t kMaxKeyPartBytes = std::size_t{64} << 10;

/// `invalid_argument` (keypath/too-deep) for a name of more than kMaxKeyParts parts. `name` is for
/// the message.
Result<void> check_key_depth(std::size_t parts, std::string_view name);

/// The name, or its beginning and "..." where it is long. Ends between characters.
std::string shortened_name(std::string_view name);

}  // namespace cairn
