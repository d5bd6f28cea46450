// SPDX-License-Identifier: Apache-2.0
// Version of the library, as the build knows it.
#pragma once

#include <string_view>

namespace cairn {

extern const std::string_view kVersion;  ///< "0.1.0"
extern const std::string_view kCommit;   ///< short commit id of the source, or "unknown"

}  // namespace cairn
