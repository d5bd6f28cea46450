// SPDX-License-Identifier: Apache-2.0
// After fingerprints have shown that ranks save different trees, finds the leaves that differ.
#pragma once

#include <string>
#include <vector>

#include "cairn/save/prepare.h"

namespace cairn {

/// Each leaf with what must be equal on every rank, for name_differences(). Empty if it would be
/// longer than kMaxLeafList.
std::string list_leaves(const std::vector<PreparedTree>& trees);
constexpr std::size_t kMaxLeafList = 4u << 20;

/// The leaves that differ in two lists, in words: "w (int32 (3,) here, int32 (4,) there), b (only
/// here)"; at most eight, then only how many more. "" if none differ, or a list is empty.
std::string name_differences(const std::string& here, const std::string& there);

}  // namespace cairn
