// SPDX-License-Identifier: Apache-2.0
// Small things that are looked after from time to time, on one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace cairn {

/// Calls functions again and again, one at a time, on a thread that begins with the first
/// subscription. Threading: safe.
class Ticker {
 public:
  /// Ends the calls when destroyed; one that is running is waited for, unless it is the one that
  /// destroys it. Movable. May outlive the ticker.
  class Subscription;

  Ticker();
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// Calls `function` every `period`, first when one has passed. It must be short: others wait.
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
