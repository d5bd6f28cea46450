// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/checkpoint.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/manifest/names.h"

namespace cairn {

std::optional<std::size_t> OpenedPrefix::find(const KeyPath& path) const {
  const auto& arrays = manifest.arrays;
  const auto found = std::ranges::find(arrays, path, &ManifestArray::path);
  if (found == arrays.end()) return std::nullopt;
  return static_cast<std::size_t>(found - arrays.begin());
}

namespace {

// One safetensors file of another system holds one tree, which matches any requested prefix. Where
// an index lists no prefixes, or there is none, paths begin with them.
bool may_be_called(const OpenedPrefix& only, const std::string& name) {
  if (!only.foreign) return false;
  if (only.any_name || only.manifest.layout == kSafetensorsLayout) return true;
  const KeyPath above({name});
  return only.name.empty() &&
         std::ranges::any_of(only.manifest.arrays, [&](const ManifestArray& array) {
           return array.path.starts_with(above);
         });
}

}  // namespace

Result<const OpenedPrefix*> Checkpoint::prefix(const std::optional<std::string>& name) const {
  if (prefixes.size() == 1 && name && may_be_called(prefixes[0], *name)) return &prefixes[0];
  std::string there;
  for (const OpenedPrefix& prefix : prefixes) {
    if (name ? prefix.name == *name : prefixes.size() == 1 || prefix.name.empty()) return &prefix;
    there += fmt::format("{}{}", there.empty() ? "" : ", ",
                         prefix.name.empty() ? "(no prefix)" : prefix.name);
  }
  if (name) {
    return Error(Code::kNotFound, "load/prefix-missing",
                 fmt::format("Prefix '{}' not found in {}. Available: {}", *name, path, there));
  }
  return Error(Code::kInvalidArgument, "load/prefix-ambiguous",
               fmt::format("No prefix specified for {}; choose one of: {}", path, there));
}

Result<std::vector<const OpenedPrefix*>> select_prefixes(const Checkpoint& checkpoint,
                                                         const std::optional<std::string>& name) {
  std::vector<const OpenedPrefix*> selected;
  if (name) {
    CAIRN_TRY_ASSIGN(const OpenedPrefix* prefix, checkpoint.prefix(name));
    selected.push_back(prefix);
  } else {
    for (const OpenedPrefix& prefix : checkpoint.prefixes) selected.push_back(&prefix);
  }
  return selected;
}

bool is_selected(const KeyPath& path, const std::vector<KeyPath>& keys) {
  const auto above = [&](const KeyPath& key) { return path.starts_with(key); };
  return keys.empty() || std::ranges::any_of(keys, above);
}

Result<std::vector<KeyPath>> keys_beginning_with(const OpenedPrefix& prefix,
                                                 const std::string& beginning) {
  std::vector<KeyPath> keys;
  for (const ManifestArray& array : prefix.manifest.arrays) {
    if (array.path.text().starts_with(beginning)) keys.push_back(array.path);
  }
  if (!keys.empty()) return keys;
  return Error(
      Code::kNotFound, "load/key-missing",
      fmt::format("no array has a key that begins with '{}'; `cairn show` lists all", beginning));
}

}  // namespace cairn
