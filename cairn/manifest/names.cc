// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/names.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/uri.h"

namespace cairn {

bool is_bare_file(std::string_view path) { return path.ends_with(".safetensors"); }

Result<void> check_prefix(std::string_view prefix) {
  if (prefix.empty()) return {};
  const std::string directory = prefix_directory(prefix);
  const std::string first = directory.substr(0, directory.find('/'));
  const bool control = std::ranges::any_of(
      prefix, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  const bool ours = first == kRecordName || first == kMarkName || first == kIndexName ||
                    first == kCheckpointMetadataName;
  if (control || ours || !is_safe_relative_path(directory) || directory.front() == '.') {
    return Error(Code::kInvalidArgument, "prefix/invalid",
                 fmt::format("'{}' cannot name a tree of a checkpoint; use a plain name such as "
                             "'model' or 'optimizer'",
                             prefix));
  }
  return {};
}

std::string prefix_directory(std::string_view prefix) {
  std::string directory(prefix);
  std::ranges::replace(directory, '.', '/');
  return directory;
}

std::string zarr2_manifest_name(std::string_view prefix) {
  return prefix.empty() ? ".cairn-manifest.json" : prefix_directory(prefix) + "/.cairn.json";
}

std::string structure_name(std::string_view prefix) {
  return std::string(prefix) + "_structure.json";
}

std::string safetensors_base(std::string_view prefix) {
  return prefix.empty() ? "model" : std::string(prefix);
}

std::string safetensors_manifest_name(std::string_view prefix) {
  return safetensors_base(prefix) + ".cairn.json";
}

}  // namespace cairn
