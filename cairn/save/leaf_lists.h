// SPDX-License-Identifier: Apache-2.0
// Ranks that know by their fingerprints that they do not save the same find out which leaves.
#pragma once

#include <string>
#include <vector>

#include "cairn/save/prepare.h"

namespace cairn {

/// Each leaf with what must be the same on every rank, for name_differences(). Empty if it would be
/// longer than kMaxLeafList.
std::string list_leaves(const std::vector<PreparedTree>& trees);
constexpr std::size_t kMaxLeafList = 4u << 20;

/// The leaves in which two lists differ, in words: "w (int32 (3,) here, int32 (4,) there), b
/// (only here)"; beyond eight only how many more. "" if they do not, or one is empty.
std::string name_differences(const std::string& here, const std::string& there);

}  // namespace cairn
