// SPDX-License-Identifier: Apache-2.0
// The managers of saves in Python's hands.
#pragma once

#include <memory>
#include <string>

#include <nanobind/nanobind.h>

#include "cairn/manager/async_manager.h"
#include "cairn/python/saves.h"

namespace cairn::python {

namespace nb = nanobind;

/// Python's AsyncManager. Its calls are Python's, one at a time.
class PythonManager {
 public:
  /// Chooses nothing (own_runtime()).
  PythonManager();

  const std::shared_ptr<AsyncCheckpointManager>& manager() const { return manager_; }
  /// The same, for a call that ranks make together. The first goes to the ranks that are chosen
  /// then (runtime()), with another manager if need be; when they have changed later, throws
  /// `failed_precondition` (python/other-ranks).
  const std::shared_ptr<AsyncCheckpointManager>& at_work();

 private:
  std::shared_ptr<AsyncCheckpointManager> manager_;
  bool has_worked_ = false;
};

/// Throws `failed_precondition` (manager/in-callback) in a callback of a save, which would wait for
/// itself.
void check_not_in_callback();
/// How trees are given to a manager: with what the reference system needs, if its saves have it.
Giving giving_for(const AsyncCheckpointManager& manager, const Json& extras);

/// Until none is on its way; says nothing of how they ended.
void wait_for_saves_of(const std::shared_ptr<AsyncCheckpointManager>& manager);

}  // namespace cairn::python
