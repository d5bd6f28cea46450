// SPDX-License-Identifier: Apache-2.0
// At which steps the ranks of a run agree on whether to save.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "cairn/base/clock.h"

namespace cairn {

/// An agreement costs every rank a message each way. At steps that save nothing, agreeing costs
/// about a given share of wall time, and happens at least every kMost steps, even if that costs
/// more. Rank 0 measures and plans; all ranks get the plan with each agreement and keep to it.
/// Threading: compatible.
class StepSchedule {
 public:
  /// Target for how long a decision of rank 0 takes to reach the others, at the current pace.
  static constexpr std::chrono::seconds kLongest{5};
  /// Maximum steps between agreements, however fast steps are: later ones may be slower.
  static constexpr std::int64_t kMost = 50;

  /// `share`: above 0; 1 or more: at every step.
  explicit StepSchedule(double share) : share_(share) {}

  /// Do the ranks agree at this step? At the first step, at planned ones, and when steps go back or
  /// repeat.
  bool is_due(std::int64_t step) const { return step >= next_ || step <= last_; }

  /// On rank 0, in an agreement at `step` that began at this time: how many steps until the next.
  /// At most twice the previous number, and at most kMost.
  std::int64_t plan(std::int64_t step, Clock::Mono began) const;

  /// On every rank: the next agreement is after this many steps.
  void agreed(std::int64_t step, std::int64_t steps);
  /// On rank 0, at the end of the agreement.
  void took(Clock::Mono began, Clock::Mono ended);

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  double share_;
  std::int64_t last_ = kNever;
  std::int64_t next_ = kNever;
  Clock::Mono ended_ = {};
  std::chrono::nanoseconds cost_{0};  // of the last one
};

}  // namespace cairn
