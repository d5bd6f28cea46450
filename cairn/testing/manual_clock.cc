// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/manual_clock.h"

namespace cairn::testing {
namespace {

constexpr std::chrono::sys_days kStart =
    std::chrono::year(2026) / std::chrono::January / std::chrono::day(1);

}  // namespace

Clock::Wall ManualClock::wall() const {
  MutexLock lock(mutex_);
  return Wall(kStart) + std::chrono::duration_cast<Wall::duration>(passed_);
}

// Not from zero: a deadline reckoned backwards must not run into the beginning of time.
Clock::Mono ManualClock::monotonic() const {
  MutexLock lock(mutex_);
  return Mono(std::chrono::hours(1)) + passed_;
}

void ManualClock::advance(std::chrono::nanoseconds span) {
  MutexLock lock(mutex_);
  passed_ += span;
}

}  // namespace cairn::testing
