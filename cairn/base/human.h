// SPDX-License-Identifier: Apache-2.0
// Sizes, times and lists as people read and write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/result.h"

namespace cairn {

/// "0 B", "999 B", "1.5 KiB", "12.0 GiB", "512 MiB": binary units, one decimal below 100.
std::string format_bytes(std::uint64_t bytes);

/// "340 ms", "1.5 s", "45 s", "3 min", "2.5 h".
std::string format_seconds(double seconds);

/// "a, b, c", and "a, b, c, d, e and 7 more" where there are more than five.
std::string format_names(const std::vector<std::string>& names);

/// "5GB" (10^9), "5GiB" or "5G" (2^30), "1.5 GiB", "512"; case does not matter.
/// `invalid_argument` (size/invalid).
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace cairn
