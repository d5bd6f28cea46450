// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/leaf_lists.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/base/sha256.h"
#include "cairn/save/tree_fingerprint.h"
#include "cairn/sharding/describe_shardings.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

constexpr std::size_t kMostNamed = 8;
constexpr std::size_t kMostOfAValue = 40;

/// Texts of key paths have no control characters in them.
constexpr char kBetween = '\t';

std::string shortened(const Value& value) {
  const auto json = value_to_json(value);
  const Json* inside = json ? json->find("value") : nullptr;
  std::string text = json ? dump_json(inside != nullptr ? *inside : *json, {}) : "";
  if (text.size() <= kMostOfAValue) return text;
  return "a value with the digest " + sha256_hex(as_bytes(text)).substr(0, 8);
}

std::string placed(const Sharding& sharding, const Shape& shape) {
  if (sharding == Sharding()) return "";
  const NamedSharding* named = sharding.named();
  return fmt::format(" as {} with the digest {}", named ? named->spec().to_string() : "boxes",
                     sharding_fingerprint(sharding, shape).substr(0, 8));
}

using Leaves = std::map<std::string_view, std::string_view>;

Leaves leaves_in(std::string_view list) {
  Leaves leaves;
  while (!list.empty()) {
    const std::string_view line = list.substr(0, list.find('\n'));
    list.remove_prefix(std::min(list.size(), line.size() + 1));
    const std::size_t at = line.find(kBetween);
    if (at != std::string_view::npos) leaves.emplace(line.substr(0, at), line.substr(at + 1));
  }
  return leaves;
}

}  // namespace

std::string list_leaves(const std::vector<PreparedTree>& trees) {
  std::string list;
  for (const PreparedTree& tree : trees) {
    const std::string& prefix = tree.manifest.prefix;
    const auto add = [&](const KeyPath& path, const std::string& what) {
      list += fmt::format("{}{}{}{}{}\n", prefix, prefix.empty() ? "" : ".", path.text(), kBetween,
                          what);
    };
    for (const PlannedArray& array : tree.arrays) {
      const auto& stored = array.stored;
      add(array.path, fmt::format("{} {}{}", dtype_name(stored.dtype), to_string(stored.shape),
                                  placed(array.sharding, stored.shape)));
    }
    const auto leaves = structure_leaves(tree.manifest.structure);
    if (!leaves) continue;
    for (const auto& [path, value] : leaves->values) add(path, shortened(value));
    if (list.size() > kMaxLeafList) return "";
  }
  return list;
}

std::string name_differences(const std::string& here, const std::string& there) {
  if (here.empty() || there.empty()) return "";
  const Leaves ours = leaves_in(here);
  Leaves theirs = leaves_in(there);
  std::vector<std::string> named;
  for (const auto& [key, what] : ours) {
    const auto node = theirs.extract(key);
    if (node.empty()) {
      named.push_back(fmt::format("{} (only here)", key));
    } else if (node.mapped() != what) {
      named.push_back(fmt::format("{} ({} here, {} there)", key, what, node.mapped()));
    }
  }
  for (const auto& [key, what] : theirs) named.push_back(fmt::format("{} (only there)", key));
  const std::size_t shown = std::min(named.size(), kMostNamed);
  std::string text = fmt::format(
      "{}", fmt::join(named.begin(), named.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (named.size() > shown) text += fmt::format(" and {} more", named.size() - shown);
  return text;
}

}  // namespace cairn
