// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/save_policy.h"

#include <algorithm>

#include <fmt/format.h>

namespace cairn {

namespace {

using std::chrono::nanoseconds;

/// later - earlier. Times that a client set can lie centuries apart.
nanoseconds span(Clock::Wall earlier, Clock::Wall later) {
  nanoseconds::rep passed = 0;
  if (__builtin_sub_overflow(nanoseconds(later.time_since_epoch()).count(),
                             nanoseconds(earlier.time_since_epoch()).count(), &passed))
    return later < earlier ? nanoseconds::min() : nanoseconds::max();
  return nanoseconds(passed);
}

Clock::Wall moved_back(Clock::Wall time, nanoseconds by) {
  return span(Clock::Wall::min(), time) < by
             ? Clock::Wall::min()
             : time - std::chrono::duration_cast<Clock::Wall::duration>(by);
}

std::string describe(const CheckpointInterval& interval) {
  return interval.until ? fmt::format("every {} until {}", interval.every, *interval.until)
                        : fmt::format("every {} for ever", interval.every);
}

Result<void> check_order(const CheckpointInterval& first, const CheckpointInterval& second) {
  const std::string both = fmt::format("'{}' before '{}'", describe(first), describe(second));
  if (!first.until) {
    return Error(Code::kInvalidArgument, "policy/open-interval",
                 both + ": only the last interval may go on for ever");
  }
  if (second.until && *first.until >= *second.until) {
    return Error(Code::kInvalidArgument, "policy/unsorted",
                 both + ": intervals must be sorted by 'until'");
  }
  return {};
}

}  // namespace

Result<SavePolicy> SavePolicy::make(std::optional<nanoseconds> save_interval,
                                    std::vector<CheckpointInterval> steps, Clock::Wall now) {
  if (save_interval && *save_interval < nanoseconds::zero()) {
    return Error(Code::kInvalidArgument, "policy/bad-interval",
                 "the time between saves must not be below zero");
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].every < 1) {
      return Error(Code::kInvalidArgument, "policy/bad-interval",
                   fmt::format("'{}': it takes at least one step", describe(steps[i])));
    }
    if (i > 0) CAIRN_TRY(check_order(steps[i - 1], steps[i]));
  }
  return SavePolicy(save_interval.value_or(nanoseconds::zero()), std::move(steps), now);
}

std::optional<std::int64_t> SavePolicy::every_at(std::int64_t step) const {
  for (const CheckpointInterval& interval : steps_) {
    if (!interval.until || *interval.until >= step) return interval.every;
  }
  return std::nullopt;
}

SaveKind SavePolicy::decide(std::int64_t step, Clock::Wall now, bool force) {
  if (now < seen_) last_time_ = std::min(now, moved_back(last_time_, span(now, seen_)));
  seen_ = now;
  if (force) return SaveKind::kPermanent;
  if (step == 0) {
    last_time_ = now;
    return SaveKind::kNone;
  }
  if (step == last_step_) return SaveKind::kNone;
  if (is_step_to_save(step)) return SaveKind::kPermanent;
  const bool due = save_interval_ > nanoseconds::zero() && span(last_time_, now) >= save_interval_;
  return due ? SaveKind::kTemporary : SaveKind::kNone;
}

bool SavePolicy::is_step_to_save(std::int64_t step) const {
  if (step == 0) return false;
  const auto every = every_at(step);
  return every && step % *every == 0;
}

void SavePolicy::saved(std::int64_t step, Clock::Wall now) {
  last_step_ = step;
  set_last_save_time(now);
}

}  // namespace cairn
