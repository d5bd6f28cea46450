// SPDX-License-Identifier: Apache-2.0
// Whether a run saves at a step: by its policies, on request or after a signal. All ranks decide
// alike.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cairn/manager/checkpointer_options.h"
#include "cairn/manager/step_schedule.h"
#include "cairn/run/save_request.h"

namespace cairn {

/// The clock of a run's policies.
Clock::Wall now_of(const CheckpointerOptions& options, Runtime& runtime);

/// With several ranks every rank makes the same calls; rank 0 decides. Threading: confined.
class StepDecider {
 public:
  struct Decision {
    SaveKind kind = SaveKind::kNone;
    bool stop = false;  ///< a signal asked one of the ranks to stop
  };

  /// The options must outlive it.
  StepDecider(const CheckpointerOptions& options, const std::string& base, SavePolicy policy,
              std::shared_ptr<AsyncCheckpointManager> manager);

  /// Rank 0's decision, on every rank. Returns the error of an earlier save of the manager if no
  /// call has returned it yet.
  Result<Decision> decide(std::int64_t step, bool force);
  /// Checkpointer::is_time().
  Result<bool> is_time(std::int64_t step, bool force);

  /// A save of this step has begun; it answers the requests and signals that came before.
  void saved(std::int64_t step);
  /// The save that a stop signal asked for is done.
  void stop() { stop_ = true; }
  bool should_stop() const { return stop_; }

  SavePolicy& policy() { return policy_; }

 private:
  struct Signals {
    bool save = false;
    bool stop = false;
  };
  bool must_agree(std::int64_t step, bool force) const;
  Result<Decision> decide_here(std::int64_t step, bool force, const Signals& signals);
  Result<Signals> look_for_signals(std::int64_t step);

  const CheckpointerOptions& options_;
  const std::shared_ptr<AsyncCheckpointManager> manager_;
  Runtime& runtime_;
  SavePolicy policy_;
  StepSchedule schedule_;
  std::optional<RequestWatcher> watcher_;  // rank 0's
  bool stop_ = false;
};

}  // namespace cairn
