// SPDX-License-Identifier: Apache-2.0
// Calls short functions periodically, on one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace cairn {

/// Calls functions repeatedly, one at a time, on a thread that starts with the first subscription.
/// Threading: safe.
class Ticker {
 public:
  /// The destructor ends the calls, and waits for one in progress unless it runs inside that call.
  /// Movable. May outlive the ticker.
  class Subscription;

  Ticker();
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// Calls `function` every `period`, for the first time after one period. It must be short: other
  /// functions wait for it.
  [[nodiscard]] Subscription every(std::chrono::milliseconds period,
                                   std::function<void()> function);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

class Ticker::Subscription {
 public:
  Subscription() = default;
  Subscription(Subscription&& other) noexcept;
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription();

 private:
  friend class Ticker;
  Subscription(std::shared_ptr<State> state, std::uint64_t id)
      : state_(std::move(state)), id_(id) {}
  std::shared_ptr<State> state_;
  std::uint64_t id_ = 0;
};

}  // namespace cairn
