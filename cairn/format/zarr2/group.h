// SPDX-License-Identifier: Apache-2.0
// `.zgroup`: marks a directory above arrays, so that zarr-python finds them. We read none.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/result.h"

namespace cairn::format::zarr2 {

constexpr std::string_view kGroupName = ".zgroup";
constexpr std::string_view kGroupMetadata = R"({"zarr_format":2})";

/// Longest `.zgroup` that is read.
constexpr std::size_t kMaxGroupBytes = 4096;

/// The groups that a set of arrays needs, each once. Threading: compatible.
class Groups {
 public:
  /// The directories above the array at `key` that are above no earlier array: "a/b", "a" and ""
  /// for "a/b/c". None for a tree that is a single array at "".
  std::vector<std::string> above(std::string_view key);

 private:
  std::set<std::string, std::less<>> known_;
};

/// Would other readers accept it as a group of zarr v2? `corrupt` (zarr2/group).
Result<void> check_group(std::string_view text);

}  // namespace cairn::format::zarr2
