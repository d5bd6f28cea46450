// SPDX-License-Identifier: Apache-2.0
// How much lies in a directory of a destination.
#pragma once

#include <cstdint>
#include <string>

#include "cairn/commit/destination.h"

namespace cairn {

/// Of all files below `directory`. Links count nothing, and neither does what cannot be read or
/// goes meanwhile.
std::uint64_t bytes_below(Destination& place, const std::string& directory);

}  // namespace cairn
