// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/foreign_names.h"

#include <algorithm>
#include <utility>

namespace cairn {

namespace {

bool parses_as_path(const std::string& name) {
  const auto path = KeyPath::parse(name);
  return path && path->text() == name && !path->empty();
}

KeyPath split_at_dots(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char byte : name) {
    if (byte == '.') {
      parts.emplace_back();
    } else {
      parts.back() += byte;
    }
  }
  return KeyPath(std::move(parts));
}

bool has_leaf_above_another(std::vector<KeyPath> paths) {
  std::ranges::sort(paths);
  const auto begins_with = [](const KeyPath& a, const KeyPath& b) { return b.starts_with(a); };
  return std::ranges::adjacent_find(paths, begins_with) != paths.end();
}

}  // namespace

std::vector<KeyPath> paths_of_names(const std::vector<std::string>& names) {
  const bool encoded = std::ranges::all_of(names, parses_as_path);
  std::vector<KeyPath> paths;
  paths.reserve(names.size());
  for (const std::string& name : names)
    paths.push_back(encoded ? *KeyPath::parse(name) : split_at_dots(name));
  if (has_leaf_above_another(paths)) {
    paths.clear();
    for (const std::string& name : names) paths.push_back(KeyPath({name}));
  }
  return paths;
}

}  // namespace cairn
