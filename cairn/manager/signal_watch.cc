// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/signal_watch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace cairn {

namespace {

// All that a handler touches: lock-free, and there before any signal can come.
constexpr int kSignals = 65;
std::array<std::atomic<bool>, kSignals> is_watched = {};
std::array<std::atomic<bool>, kSignals> has_come = {};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void cairn_note_signal(int signal) {
  has_come[static_cast<std::size_t>(signal)].store(true);
}

std::atomic<bool>& come(int signal) { return has_come[static_cast<std::size_t>(signal)]; }

}  // namespace

struct SignalWatch::Old {
  int signal;
  struct sigaction action;
};

SignalWatch::SignalWatch(Options options) : options_(std::move(options)) {}

Result<std::unique_ptr<SignalWatch>> SignalWatch::make(const Options& options) {
  std::unique_ptr<SignalWatch> watch(new SignalWatch(options));
  std::vector<int> all = options.save;
  all.insert(all.end(), options.save_and_stop.begin(), options.save_and_stop.end());
  for (const int signal : all) {
    if (signal < 1 || signal >= kSignals || signal == SIGKILL || signal == SIGSTOP) {
      return Error(Code::kInvalidArgument, "signals/unknown",
                   fmt::format("{} is no signal that can be watched", signal));
    }
    if (is_watched[static_cast<std::size_t>(signal)].exchange(true)) {
      return Error(Code::kFailedPrecondition, "signals/taken",
                   fmt::format("signal {} is watched already", signal));
    }
    come(signal).store(false);
    struct sigaction action = {};
    action.sa_handler = cairn_note_signal;
    action.sa_flags = SA_RESTART;
    Old old{signal, {}};
    sigaction(signal, &action, &old.action);
    watch->old_.push_back(old);
  }
  return watch;
}

SignalWatch::~SignalWatch() {
  for (const Old& old : old_) {
    sigaction(old.signal, &old.action, nullptr);
    is_watched[static_cast<std::size_t>(old.signal)].store(false);
  }
}

bool SignalWatch::is_requested() const {
  for (const Old& old : old_) {
    if (come(old.signal).load(std::memory_order_relaxed)) return true;
  }
  return false;
}

void SignalWatch::answered() {
  for (const Old& old : old_) {
    const bool stops = std::ranges::count(options_.save_and_stop, old.signal) > 0;
    if (come(old.signal).exchange(false) && stops) stop_ = true;
  }
}

bool SignalWatch::should_stop() const {
  if (stop_) return true;
  for (const int signal : options_.save_and_stop) {
    if (come(signal).load(std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace cairn
