// SPDX-License-Identifier: Apache-2.0
// Managers of saves for Python.
#pragma once

#include <memory>
#include <string>

#include <nanobind/nanobind.h>

#include "cairn/manager/async_manager.h"
#include "cairn/python/saves.h"

namespace cairn::python {

namespace nb = nanobind;

/// AsyncManager of Python, which calls it one call at a time.
class PythonManager {
 public:
  /// Does not choose ranks (own_runtime()).
  PythonManager();

  const std::shared_ptr<AsyncCheckpointManager>& manager() const { return manager_; }
  /// The same, for a call that ranks make together. The first call uses the ranks chosen by then
  /// (runtime()), if need be with another manager; if they change later, throws
  /// `failed_precondition` (python/other-ranks).
  const std::shared_ptr<AsyncCheckpointManager>& at_work();

 private:
  std::shared_ptr<AsyncCheckpointManager> manager_;
  bool has_worked_ = false;
};

/// Throws `failed_precondition` (manager/in-callback) in a callback of a save, which would wait for
/// itself.
void check_not_in_callback();
/// How trees are passed to a manager: with what the reference system needs, if its saves include
/// it.
Giving giving_for(const AsyncCheckpointManager& manager, const Json& extras);

/// Waits until no save is in flight; does not report how they ended.
void wait_for_saves_of(const std::shared_ptr<AsyncCheckpointManager>& manager);

}  // namespace cairn::python
