// SPDX-License-Identifier: Apache-2.0
// `Future<T>`: a Result<T> that comes later.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "cairn/async/deadline.h"
#include "cairn/async/mutex.h"
#include "cairn/base/result.h"

namespace cairn {

namespace future_detail {
template <typename T>
struct State {
  Mutex mutex;
  CondVar ready;
  std::optional<Result<T>> result CAIRN_GUARDED_BY(mutex);

  void set(Result<T> value) {
    MutexLock lock(mutex);
    if (result) return;
    result.emplace(std::move(value));
    ready.notify_all();
  }
};
}  // namespace future_detail

/// Shared view of a result to come; copies see the same. T must be copyable. Threading: safe.
/// Dropping it cancels nothing.
template <typename T>
class Future {
 public:
  bool done() const {
    MutexLock lock(state_->mutex);
    return state_->result.has_value();
  }
  /// Waits; `deadline_exceeded` (async/deadline) if it does not come in time.
  Result<T> wait(Deadline deadline = Deadline::never()) const {
    MutexLock lock(state_->mutex);
    while (!state_->result) {
      if (deadline.is_never()) {
        state_->ready.wait(state_->mutex);
      } else if (!state_->ready.wait_until(state_->mutex, deadline.time()) && !state_->result) {
        return Error(Code::kDeadlineExceeded, "async/deadline", "no result before the deadline");
      }
    }
    return *state_->result;
  }

 private:
  template <typename U>
  friend class Promise;
  explicit Future(std::shared_ptr<future_detail::State<T>> state) : state_(std::move(state)) {}
  std::shared_ptr<future_detail::State<T>> state_;
};

/// The writing end. A promise that dies unset sets `cancelled` (async/broken-promise). Move-only.
template <typename T>
class Promise {
 public:
  Promise() : state_(std::make_shared<future_detail::State<T>>()) {}
  ~Promise() { give_up(); }
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&& other) noexcept {
    if (this == &other) return *this;
    give_up();
    state_ = std::move(other.state_);
    return *this;
  }

  Future<T> future() const { return Future<T>(state_); }
  /// The first call counts, later ones do nothing.
  void set(Result<T> result) { state_->set(std::move(result)); }

 private:
  void give_up() {
    if (state_) {
      state_->set(Error(Code::kCancelled, "async/broken-promise", "the work was dropped"));
    }
  }

  std::shared_ptr<future_detail::State<T>> state_;
};

}  // namespace cairn
