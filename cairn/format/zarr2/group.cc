// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/zarr2/group.h"

#include "cairn/base/json.h"

namespace cairn::format::zarr2 {

std::vector<std::string> Groups::above(std::string_view key) {
  std::vector<std::string> found;
  while (!key.empty()) {
    const std::size_t slash = key.rfind('/');
    key = key.substr(0, slash == std::string_view::npos ? 0 : slash);
    // Whatever is above a known one is known.
    if (!known_.emplace(key).second) break;
    found.emplace_back(key);
  }
  return found;
}

Result<void> check_group(std::string_view text) {
  const auto json = parse_json(text);
  const Json* const version = json ? json->find("zarr_format") : nullptr;
  if (version != nullptr && version->integer() == 2) return {};
  return Error(Code::kCorrupt, "zarr2/group", "this is not a .zgroup of zarr v2");
}

}  // namespace cairn::format::zarr2
