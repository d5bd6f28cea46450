// SPDX-License-Identifier: Apache-2.0
// Two JSON objects as one.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "cairn/base/json.h"

namespace cairn {

/// All members of `first`, then those of `second` whose names `first` has not. What is no object
/// has no members; null if there are none. About linear.
inline Json join_members(Json first, const Json& second) {
  if (second.object() == nullptr || second.object()->empty()) return first;
  Json::Object joined = first.object() != nullptr ? std::move(*first.object()) : Json::Object();
  std::set<std::string> taken;
  for (const auto& [name, value] : joined) taken.insert(name);
  for (const auto& [name, value] : *second.object()) {
    if (!taken.contains(name)) joined.emplace_back(name, value);
  }
  return joined;
}

}  // namespace cairn
