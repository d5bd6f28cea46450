// SPDX-License-Identifier: Apache-2.0
// A save on demand: somebody leaves `.cairn-request.json` in a run directory, the job that owns the
// run sees it and saves at its next step.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "cairn/async/ticker.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Asks for a permanent save. `not_found` if there is no such directory.
Result<void> request_save(const std::string& base, const std::string& reason, Runtime& runtime);
/// Is a request still waiting? The reason.
Result<std::optional<std::string>> find_request(const std::string& base, Runtime& runtime);

/// Looks every second. Threading: safe. The runtime must outlive it.
class RequestWatcher {
 public:
  RequestWatcher(std::string base, Runtime& runtime);

  /// Costs nothing: the looking is done elsewhere.
  bool is_requested() const { return requested_.load(std::memory_order_relaxed); }
  /// A save has been made: the request that was seen goes away.
  void answered();
  /// One look, as the watcher takes every second.
  void look();

 private:
  const std::string base_;
  Runtime& runtime_;
  std::atomic<bool> requested_ = false;
  Ticker::Subscription subscription_;
};

}  // namespace cairn
