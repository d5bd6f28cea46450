// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/ticker.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "cairn/async/caught.h"
#include "cairn/async/mutex.h"

namespace cairn {

using SteadyClock = std::chrono::steady_clock;

struct Ticker::State {
  struct Entry {
    std::chrono::milliseconds period;
    SteadyClock::time_point due;
    std::function<void()> function;
  };

  Mutex mutex;
  CondVar changed;
  std::map<std::uint64_t, Entry> entries CAIRN_GUARDED_BY(mutex);
  std::uint64_t next_id CAIRN_GUARDED_BY(mutex) = 1;
  std::uint64_t running CAIRN_GUARDED_BY(mutex) = 0;  // the entry that is being called
  std::thread::id caller CAIRN_GUARDED_BY(mutex);
  bool closing CAIRN_GUARDED_BY(mutex) = false;
  std::jthread thread CAIRN_GUARDED_BY(mutex);

  void remove(std::uint64_t id) {
    MutexLock lock(mutex);
    entries.erase(id);
    changed.notify_all();
    while (running == id && caller != std::this_thread::get_id()) changed.wait(mutex);
  }

  void serve() {
    prepare_for_exceptions();
    MutexLock lock(mutex);
    caller = std::this_thread::get_id();
    while (!closing) {
      const auto next =
          std::ranges::min_element(entries, {}, [](const auto& entry) { return entry.second.due; });
      if (next == entries.end()) {
        changed.wait(mutex);
        continue;
      }
      if (next->second.due > SteadyClock::now()) {
        changed.wait_until(mutex, next->second.due);
        continue;
      }
      next->second.due = SteadyClock::now() + next->second.period;
      call(next->first, next->second.function);
    }
  }

  // The function may end its own subscription.
  void call(std::uint64_t id, const std::function<void()>& function) CAIRN_REQUIRES(mutex) {
    const std::function<void()> copy = function;
    running = id;
    mutex.unlock();
    try {
      copy();
    } catch (...) {  // NOLINT(bugprone-empty-catch): as Executor
    }
    mutex.lock();
    running = 0;
    changed.notify_all();
  }
};

Ticker::Ticker() : state_(std::make_shared<State>()) {}

Ticker::~Ticker() {
  std::jthread last;
  MutexLock lock(state_->mutex);
  state_->closing = true;
  state_->entries.clear();
  last = std::move(state_->thread);
  state_->changed.notify_all();
}

Ticker::Subscription Ticker::every(std::chrono::milliseconds period,
                                   std::function<void()> function) {
  MutexLock lock(state_->mutex);
  const std::uint64_t id = state_->next_id++;
  state_->entries.emplace(id,
                          State::Entry{period, SteadyClock::now() + period, std::move(function)});
  state_->changed.notify_all();
  if (!state_->thread.joinable()) {
    try {
      state_->thread = std::jthread([state = state_.get()] { state->serve(); });
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): it will never tick
    }
  }
  return Subscription(state_, id);
}

Ticker::Subscription::Subscription(Subscription&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)), id_(other.id_) {}

Ticker::Subscription& Ticker::Subscription::operator=(Subscription&& other) noexcept {
  Subscription old(std::move(other));
  std::swap(state_, old.state_);
  std::swap(id_, old.id_);
  return *this;
}

Ticker::Subscription::~Subscription() {
  if (state_) state_->remove(id_);
}

}  // namespace cairn
