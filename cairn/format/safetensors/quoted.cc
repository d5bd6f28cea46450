// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/quoted.h"

#include "cairn/base/json.h"

namespace cairn::format::safetensors {

std::string quoted(std::string_view name) {
  constexpr std::size_t kShown = 160;
  return dump_json(name.substr(0, kShown)) + (name.size() > kShown ? "..." : "");
}

}  // namespace cairn::format::safetensors
