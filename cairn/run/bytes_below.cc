// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/bytes_below.h"

#include "cairn/base/uri.h"

namespace cairn {

std::uint64_t bytes_below(Destination& place, const std::string& directory) {
  const auto children = place.list(directory);
  if (!children) return 0;
  std::uint64_t bytes = 0;
  for (const Destination::Child& child : *children) {
    const std::string name = join_path(directory, child.name);
    if (child.kind == Destination::Child::Kind::kDirectory) {
      bytes += bytes_below(place, name);
    } else if (child.kind == Destination::Child::Kind::kFile) {
      const auto info = place.stat(name);
      bytes += info ? info->size : 0;
    }
  }
  return bytes;
}

}  // namespace cairn
