// SPDX-License-Identifier: Apache-2.0
// When a run saves: by step, by the clock, or because it must. Pure; `Checkpointer` asks it at
// every step, on rank 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/base/clock.h"

namespace cairn {

/// Permanent saves at every step that `every` divides, up to the step `until`, which is included.
struct CheckpointInterval {
  std::int64_t every = 1;
  std::optional<std::int64_t> until = {};  ///< nothing: for ever
};

enum class SaveKind : std::uint8_t { kNone, kTemporary, kPermanent };

/// Threading: compatible.
class SavePolicy {
 public:
  /// `save_interval`: time between temporary saves; nothing or zero: there are none. `steps`: in
  /// order of `until`, of which only the last may be open. `now` starts the clock.
  /// `invalid_argument`: policy/bad-interval (below zero, or `every` below 1), policy/unsorted,
  /// policy/open-interval, each with the offending pair.
  static Result<SavePolicy> make(std::optional<std::chrono::nanoseconds> save_interval,
                                 std::vector<CheckpointInterval> steps, Clock::Wall now);

  /// What to do at this step. Only saved() records a save. The first rule that fits:
  ///  - forced: permanent, whatever the rest says;
  ///  - step 0: nothing, and the clock starts again;
  ///  - the step that was saved last: nothing;
  ///  - the first interval with until >= step divides it: permanent;
  ///  - the save interval has passed since the last save: temporary.
  /// If the clock jumps back, the time of the last save moves back with it, so no elapsed time is
  /// lost. A jump forward counts as elapsed time.
  /// Allocates nothing.
  SaveKind decide(std::int64_t step, Clock::Wall now, bool force = false);

  /// Is it a step of the intervals? Depends on the step alone, so all ranks get the same answer.
  bool is_step_to_save(std::int64_t step) const;

  /// A save of this step was made, by this job or by hand.
  void saved(std::int64_t step, Clock::Wall now);

  /// 0 in the beginning.
  std::int64_t last_save_step() const { return last_step_; }
  void set_last_save_step(std::int64_t step) { last_step_ = step; }
  Clock::Wall last_save_time() const { return last_time_; }
  /// A time ahead of the clock counts as now.
  void set_last_save_time(Clock::Wall time) { last_time_ = seen_ = time; }

 private:
  SavePolicy(std::chrono::nanoseconds save_interval, std::vector<CheckpointInterval> steps,
             Clock::Wall now)
      : save_interval_(save_interval), steps_(std::move(steps)), last_time_(now), seen_(now) {}

  std::optional<std::int64_t> every_at(std::int64_t step) const;

  std::chrono::nanoseconds save_interval_;  // zero: no saves by the clock
  std::vector<CheckpointInterval> steps_;
  std::int64_t last_step_ = 0;
  Clock::Wall last_time_;
  Clock::Wall seen_;  // never before last_time_
};

}  // namespace cairn
