// SPDX-License-Identifier: Apache-2.0
// Progress as people watch it: a bar with bytes, rate and time left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/base/clock.h"

namespace cairn {

struct ProgressStyle {
  /// For a terminal: one bar that is drawn over itself. Otherwise lines of ASCII, for a log.
  bool terminal = false;
  std::uint64_t lines = 10;  ///< at most so many lines after the first, in equal parts of the work
};

/// Makes the text and leaves it to the caller to write it where it belongs. With a name of up to
/// nine letters it fits into 80 columns. Time begins with the bar. Threading: confined; a
/// ProgressSink is called once at a time, which is enough.
class ProgressBar {
 public:
  ProgressBar(std::string what, ProgressStyle style, const Clock& clock = system_clock());

  /// What to write now that `done` bytes of `total` are done: often nothing. Ends a line once all
  /// is done, and says nothing after that.
  std::string update(std::uint64_t done, std::uint64_t total);

 private:
  bool due(std::uint64_t done, std::uint64_t total, Clock::Mono now);

  const std::string what_;
  const ProgressStyle style_;
  const Clock& clock_;
  const Clock::Mono began_;
  std::optional<Clock::Mono> drawn_;
  std::optional<std::uint64_t> part_;
  bool ended_ = false;
};

/// Sixteen columns, of which a share of 0 to 1 is full; in ASCII unless it is for a terminal.
std::string draw_bar(double share, bool terminal);

}  // namespace cairn
