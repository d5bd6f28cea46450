// SPDX-License-Identifier: Apache-2.0
// A clock whose time the test moves.
#pragma once

#include "cairn/async/mutex.h"
#include "cairn/base/clock.h"

namespace cairn::testing {

/// Starts at 2026-01-01T00:00:00Z; both times move together. Threading: safe.
class ManualClock final : public Clock {
 public:
  Wall wall() const override;
  Mono monotonic() const override;
  /// Does not wait: moves the time instead.
  void pause(std::chrono::nanoseconds span) override { advance(span); }

  void advance(std::chrono::nanoseconds span);

 private:
  mutable Mutex mutex_;
  std::chrono::nanoseconds passed_ CAIRN_GUARDED_BY(mutex_){0};
};

}  // namespace cairn::testing
