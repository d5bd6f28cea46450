// SPDX-License-Identifier: Apache-2.0
// A point in time after which waiting ends with an error.
#pragma once

#include <chrono>

#include "cairn/base/clock.h"

namespace cairn {

class Deadline {
 public:
  static Deadline never() { return Deadline(Clock::Mono::max()); }
  static Deadline at(Clock::Mono time) { return Deadline(time); }
  /// A span too long to add means never.
  static Deadline in(std::chrono::nanoseconds span, const Clock& clock = system_clock()) {
    const Clock::Mono now = clock.monotonic();
    return span < Clock::Mono::max() - now ? Deadline(now + span) : never();
  }

  bool is_never() const { return time_ == Clock::Mono::max(); }
  bool passed(const Clock& clock = system_clock()) const {
    return !is_never() && clock.monotonic() >= time_;
  }
  Clock::Mono time() const { return time_; }

 private:
  explicit Deadline(Clock::Mono time) : time_(time) {}
  Clock::Mono time_;
};

}  // namespace cairn
