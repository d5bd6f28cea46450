// SPDX-License-Identifier: Apache-2.0
// How a value from a hostile file appears in a message: as ASCII JSON, and never long.
#pragma once

#include <string>

#include "cairn/base/json.h"

namespace cairn::format::zarr2 {

inline std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = dump_json(value, {.ascii = true});
  if (text.size() > kLongest) text.replace(kLongest - 3, std::string::npos, "...");
  return text;
}

}  // namespace cairn::format::zarr2
