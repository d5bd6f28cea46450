// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/seen_path.h"

#include <string>
#include <utility>
#include <vector>

namespace cairn {

KeyPath seen_path(const OpenedPrefix& prefix, const KeyPath& path, const LoadOptions& options) {
  const std::string name = prefix.name.empty() ? options.prefix.value_or("") : prefix.name;
  if (name.empty()) return path;
  std::vector<std::string> parts = path.parts();
  if (prefix.name.empty() && parts.size() > 1 && parts.front() == name) parts.erase(parts.begin());
  if (options.keys_with_prefix || parts.empty()) parts.insert(parts.begin(), name);
  return KeyPath(std::move(parts));
}

}  // namespace cairn
