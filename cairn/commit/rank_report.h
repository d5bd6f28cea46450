// SPDX-License-Identifier: Apache-2.0
// Report of one rank on its part of a save: what it wrote, or why it failed. One file each in the
// attempt.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/result.h"
#include "cairn/manifest/sums.h"

namespace cairn {

/// Longest report that is read.
constexpr std::size_t kMaxRankReportBytes = std::size_t{1} << 30;

struct RankReport {
  int rank = 0;
  std::optional<Error> failure;   ///< then there are no sums
  std::vector<WrittenSums> sums;  ///< by prefix, in the order of the save
};

/// `invalid_argument` (json/...) for more than parse_rank_report() would read.
Result<std::string> dump_rank_report(const RankReport& report);
/// Hostile bytes. `corrupt` (ranks/bad-report). A failure comes back as told_error.h says.
Result<RankReport> parse_rank_report(std::string_view text);

}  // namespace cairn
