// SPDX-License-Identifier: Apache-2.0
// Time is passed in, so that tests control it.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

/// Threading: safe.
class Clock {
 public:
  using Wall = std::chrono::system_clock::time_point;
  using Mono = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  virtual Wall wall() const = 0;
  virtual Mono monotonic() const = 0;
  /// Returns after `span`; the only sleep in the library.
  virtual void pause(std::chrono::nanoseconds span) = 0;
};

/// The machine's clock. Lives for ever.
Clock& system_clock();

/// "2026-01-31T12:34:56.789012+00:00", always UTC, as manifests have it.
std::string format_timestamp(Clock::Wall time);
/// "2026-01-31T13:34:56.789012": local time without a zero fraction, as Python's
/// datetime.now().isoformat(), which the reference system writes into the marks of a run's
/// checkpoints.
std::string format_local_timestamp(Clock::Wall time);
/// ISO 8601 with or without seconds, fraction and zone ("Z", "+01:00"); no zone means local time.
/// `corrupt` (clock/bad-timestamp).
Result<Clock::Wall> parse_timestamp(std::string_view text);

}  // namespace cairn
