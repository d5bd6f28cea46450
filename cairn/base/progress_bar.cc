// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/progress_bar.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/human.h"

namespace cairn {

namespace {

constexpr std::chrono::milliseconds kBetweenDrawings{80};
constexpr int kWidth = 16;

/// Rate and time left, or the time it took.
std::string pace(std::uint64_t done, std::uint64_t total, double seconds) {
  if (done == 0 || seconds <= 0) return "";
  const double rate = static_cast<double>(done) / seconds;
  const std::string time = done >= total
                               ? format_seconds(seconds)
                               : format_seconds(static_cast<double>(total - done) / rate) + " left";
  return fmt::format("  {}/s  {}", format_bytes(static_cast<std::uint64_t>(rate)), time);
}

}  // namespace

std::string draw_bar(double share, bool terminal) {
  const int full = static_cast<int>(share * kWidth);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) {
    if (terminal) {
      bar += i < full ? "\u2588" : "\u2591";
    } else {
      bar += i < full ? '#' : '.';
    }
  }
  return bar;
}

ProgressBar::ProgressBar(std::string what, ProgressStyle style, const Clock& clock)
    : what_(std::move(what)), style_(style), clock_(clock), began_(clock.monotonic()) {}

bool ProgressBar::due(std::uint64_t done, std::uint64_t total, Clock::Mono now) {
  if (done >= total) return true;
  if (style_.terminal) {
    if (drawn_ && now - *drawn_ < kBetweenDrawings) return false;
    drawn_ = now;
    return true;
  }
  const auto part = static_cast<std::uint64_t>(
      static_cast<double>(done) / static_cast<double>(total) * static_cast<double>(style_.lines));
  return std::exchange(part_, part) != part;
}

std::string ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  const auto now = clock_.monotonic();
  if (ended_ || !due(done, total, now)) return "";
  ended_ = done >= total;
  const double share = ended_ ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const std::string text =
      fmt::format("{} {} {:3}%  {} of {}{}", what_, draw_bar(share, style_.terminal),
                  static_cast<int>(share * 100), format_bytes(done), format_bytes(total),
                  pace(done, total, seconds));
  if (!style_.terminal) return text + "\n";
  return "\r" + text + "\x1b[K" + (ended_ ? "\n" : "");
}

}  // namespace cairn
