// SPDX-License-Identifier: Apache-2.0
// Progress as people watch it: a bar with bytes, rate and time left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/base/clock.h"

namespace cairn {

struct ProgressStyle {
  /// For a terminal: one bar, redrawn in place. Otherwise ASCII lines, for a log.
  bool terminal = false;
  std::uint64_t lines = 10;  ///< at most so many lines after the first, in equal parts of the work
};

/// Makes the text; the caller writes it. With a name of up to nine letters it fits into 80 columns.
/// Time starts with the bar. Threading: confined, which suits a ProgressSink: it is called once at
/// a time.
class ProgressBar {
 public:
  ProgressBar(std::string what, ProgressStyle style, const Clock& clock = system_clock());

  /// The text to write when `done` bytes of `total` are done; often empty. Ends the line once all
  /// is done, and returns nothing after that.
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

/// A bar of sixteen columns, filled in proportion to the share (0 to 1); ASCII unless it is for a
/// terminal.
std::string draw_bar(double share, bool terminal);

}  // namespace cairn
