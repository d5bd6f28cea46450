// SPDX-License-Identifier: Apache-2.0
// One call at a time to an object that is used by work on other threads, even though a signal may
// take a caller away, and a callback may call the same object again.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "cairn/async/mutex.h"
#include "cairn/python/failure.h"

namespace cairn::python {

/// Threading: safe.
class Turns {
 public:
  using Thread = decltype(std::this_thread::get_id());

  /// Of one call; taken by the caller, used aside.
  struct Ticket {
    std::uint64_t number;
    Thread caller;
  };
  Ticket take();

  /// Aside, until nobody else has a turn but a call whose callback makes this one.
  void enter(const Ticket& ticket);
  /// By the caller itself, if nobody has a turn.
  bool enter_at_once(const Ticket& ticket);
  void leave(const Ticket& ticket);
  /// The caller does not wait any longer; the call, if it is still there, keeps its turn.
  void abandon(const Ticket& ticket);

 private:
  struct Turn {
    Ticket ticket;
    bool attended;
  };
  Mutex mutex_;
  CondVar changed_;
  std::uint64_t last_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::vector<Turn> turns_ CAIRN_GUARDED_BY(mutex_);  // each made by a callback of the one before
};

/// `call(work)` waits for what it does aside; `work` is to be wrapped by the given function.
template <typename Call>
auto in_turn(const std::shared_ptr<Turns>& turns, Call call) {
  const Turns::Ticket ticket = turns->take();
  const auto wrap = [turns, ticket](auto work) {
    return [turns, ticket, work = std::move(work)](const auto&... given) {
      turns->enter(ticket);
      const std::shared_ptr<Turns> turn(turns.get(), [&](Turns* held) { held->leave(ticket); });
      return work(given...);
    };
  };
  try {
    return call(wrap);
  } catch (nb::python_error&) {
    turns->abandon(ticket);
    throw;
  }
}

}  // namespace cairn::python
