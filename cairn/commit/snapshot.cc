// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/snapshot.h"

namespace cairn {

std::string Snapshot::locate(const std::string& name) const {
  if (moved.empty()) return name;
  for (std::size_t end = name.size(); end != std::string::npos && end > 0;
       end = name.rfind('/', end - 1)) {
    if (const auto found = moved.find(name.substr(0, end)); found != moved.end())
      return found->second + name.substr(end);
  }
  return name;
}

std::string Snapshot::version() const {
  std::string text = std::to_string(record ? record->generation : 0);
  // Another directory at the same path may have come as far.
  if (record && !record->committed.empty()) text += " " + record->committed.back();
  for (const AttemptView& attempt : attempts) {
    if (attempt.state == AttemptState::kDecided) text += " " + attempt.id;
  }
  for (const auto& [entry, place] : moved) text += " " + place;
  return text;
}

}  // namespace cairn
