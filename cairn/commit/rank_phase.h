// SPDX-License-Identifier: Apache-2.0
// Progress of a rank during a save, for ranks that wait for it and for `cairn watch`. A save by one
// process is that of rank 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/base/bytes.h"
#include "cairn/base/result.h"
#include "cairn/commit/process_name.h"

namespace cairn {

/// The phase of a rank that could not even write its report; the error follows.
constexpr std::string_view kFailedPhase = "failed: ";
/// Longest line that is read.
constexpr std::size_t kMaxPhaseBytes = 64 * kKiB;

struct RankPhase {
  std::string phase = {};   ///< in words, such as "writing"
  std::uint64_t done = 0;   ///< bytes of elements that this rank has written
  std::uint64_t total = 0;  ///< that it has to write; 0: not known yet
  std::string since = {};   ///< when the phase began
  std::string time = {};    ///< of the last change
  ProcessName writer = {};
};

/// One line.
std::string dump_rank_phase(const RankPhase& phase);
/// Hostile bytes; only the first line counts. What is missing in it counts as empty. `corrupt`
/// (ranks/bad-phase) without a phase.
Result<RankPhase> parse_rank_phase(std::string_view text);

/// What others see of a rank.
struct SeenPhase {
  RankPhase said;
  /// Does its process live? Nothing where that cannot be known.
  std::optional<bool> alive;
};

}  // namespace cairn
