// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/key_depth.h"

#include <fmt/format.h>

namespace cairn {

Result<void> check_key_depth(std::size_t parts, std::string_view name) {
  if (parts <= kMaxKeyParts) return {};
  return Error(
      Code::kInvalidArgument, "keypath/too-deep",
      fmt::format("key path '{}': it has more than {} parts", shortened_name(name), kMaxKeyParts));
}

std::string shortened_name(std::string_view name) {
  constexpr std::size_t kShown = 200;
  if (name.size() <= kShown) return std::string(name);
  std::size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return std::string(name.substr(0, end)) + "...";
}

}  // namespace cairn
