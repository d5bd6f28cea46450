// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/find_leaf.h"

#include <algorithm>

#include <fmt/format.h>

namespace cairn {

namespace {

void add_array(const OpenedPrefix& prefix, std::size_t array, std::vector<FoundLeaf>& found) {
  found.push_back({&prefix, &prefix.manifest.arrays[array].path, array, nullptr});
}

void find_in(const OpenedPrefix& prefix, const KeyPath& path, std::vector<FoundLeaf>& found) {
  if (const auto array = prefix.find(path)) add_array(prefix, *array, found);
  for (const auto& [key, value] : prefix.values) {
    if (key == path) found.push_back({&prefix, &key, {}, &value});
  }
}

std::string hint(const std::vector<const OpenedPrefix*>& prefixes, const KeyPath& path) {
  for (const OpenedPrefix* prefix : prefixes) {
    for (const ManifestArray& array : prefix->manifest.arrays) {
      if (array.path.starts_with(path))
        return fmt::format("it is a subtree: '{}' is there", array.path.text());
    }
  }
  return "`cairn show` lists all";
}

}  // namespace

std::string FoundLeaf::name() const {
  return prefix->name.empty() ? fmt::format("{} without a prefix", path->text())
                              : fmt::format("{} of prefix {}", path->text(), prefix->name);
}

Json::Object FoundLeaf::json() const {
  return {{"key", path->text()},
          {"prefix", prefix->name},
          {"path", Json::Array(path->parts().begin(), path->parts().end())}};
}

Result<FoundLeaf> find_leaf(const Checkpoint& checkpoint, const std::string& key,
                            const std::optional<std::string>& among) {
  CAIRN_TRY_ASSIGN(const auto prefixes, select_prefixes(checkpoint, among));
  std::vector<FoundLeaf> found;
  const auto whole = KeyPath::parse(key);
  for (const OpenedPrefix* prefix : prefixes) {
    if (whole) find_in(*prefix, *whole, found);
    // Names of safetensors are not paths: any name is found as it stands.
    const auto stored = std::ranges::find(prefix->names, key);
    if (found.empty() && stored != prefix->names.end()) {
      add_array(*prefix, static_cast<std::size_t>(stored - prefix->names.begin()), found);
    }
    if (prefix->name.empty() || !key.starts_with(prefix->name + ".")) continue;
    const auto rest = KeyPath::parse(std::string_view(key).substr(prefix->name.size() + 1));
    if (rest) find_in(*prefix, *rest, found);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    if (!whole) return whole.error();
    return Error(Code::kNotFound, "load/key-missing",
                 fmt::format("there is no leaf '{}' in {}; {}", key, checkpoint.path,
                             hint(prefixes, *whole)));
  }
  std::string both;
  for (const FoundLeaf& leaf : found) both += (both.empty() ? "" : ", ") + leaf.name();
  return Error(Code::kInvalidArgument, "load/key-ambiguous",
               fmt::format("'{}' is in several trees: {}; put the prefix in front", key, both));
}

}  // namespace cairn
