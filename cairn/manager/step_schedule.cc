// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/step_schedule.h"

#include <algorithm>
#include <cmath>

namespace cairn {

std::int64_t StepSchedule::plan(std::int64_t step, Clock::Mono began) const {
  if (last_ == kNever || step <= last_) return 1;
  using Seconds = std::chrono::duration<double>;
  const double pace = std::max(Seconds(began - ended_).count() / static_cast<double>(step - last_),
                               Seconds(std::chrono::nanoseconds(1)).count());
  const double wanted = Seconds(cost_).count() * (1 / share_ - 1) / pace;
  const double longest = Seconds(kLongest).count() / pace;
  const double doubled = 2 * static_cast<double>(next_ - last_);
  const double most = std::min({wanted, longest, doubled, static_cast<double>(kMost)});
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(most)));
}

void StepSchedule::agreed(std::int64_t step, std::int64_t steps) {
  last_ = step;
  next_ = step > std::numeric_limits<std::int64_t>::max() - steps ? step : step + steps;
}

void StepSchedule::took(Clock::Mono began, Clock::Mono ended) {
  ended_ = ended;
  cost_ = ended - began;
}

}  // namespace cairn
