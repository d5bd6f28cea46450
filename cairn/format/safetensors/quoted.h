// SPDX-License-Identifier: Apache-2.0
// Names from hostile files, in messages.
#pragma once

#include <string>
#include <string_view>

namespace cairn::format::safetensors {

/// "name" in quotes, control characters escaped, cut where it is long.
std::string quoted(std::string_view name);

}  // namespace cairn::format::safetensors
