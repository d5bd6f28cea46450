// SPDX-License-Identifier: Apache-2.0
// Trees that are saved with their containers have a name, their prefix.
#pragma once

#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

/// `invalid_argument` (save/no-prefix) for an empty prefix.
Result<void> check_prefix_to_save(std::string_view prefix);
/// `invalid_argument` (load/no-prefix), likewise.
Result<void> check_prefix_to_load(std::string_view prefix);

}  // namespace cairn
