// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/turns.h"

#include <algorithm>

namespace cairn::python {

Turns::Ticket Turns::take() {
  MutexLock lock(mutex_);
  return {++last_, std::this_thread::get_id()};
}

void Turns::enter(const Ticket& ticket) {
  MutexLock lock(mutex_);
  const auto may = [&](const std::vector<Turn>& turns) {
    return turns.empty() || (turns.back().attended && turns.back().ticket.caller == ticket.caller);
  };
  while (!may(turns_)) changed_.wait(mutex_);
  turns_.push_back({ticket, true});
}

bool Turns::enter_at_once(const Ticket& ticket) {
  MutexLock lock(mutex_);
  if (!turns_.empty()) return false;
  turns_.push_back({ticket, true});
  return true;
}

void Turns::leave(const Ticket& ticket) {
  MutexLock lock(mutex_);
  std::erase_if(turns_, [&](const Turn& turn) { return turn.ticket.number == ticket.number; });
  changed_.notify_all();
}

void Turns::abandon(const Ticket& ticket) {
  MutexLock lock(mutex_);
  for (Turn& turn : turns_) {
    if (turn.ticket.number == ticket.number) turn.attended = false;
  }
}

}  // namespace cairn::python
