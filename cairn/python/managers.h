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

/// Python's AsyncManager.
struct PythonManager {
  std::shared_ptr<AsyncCheckpointManager> manager;
};

/// For the reference system (structures_of()), if these saves can have them.
Structures structures_for(const AsyncCheckpointManager& manager, const PythonTrees& trees,
                          const std::string& extras);
/// Gives a save its structures, and lets `first` have its say before whatever guard it has.
SaveAdjustment adjustment(CommitGuard first, Structures structures);

/// Until none is on its way; says nothing of how they ended.
void wait_for_saves_of(const std::shared_ptr<AsyncCheckpointManager>& manager);

void bind_managers(nb::module_& module);
void bind_checkpointers(nb::module_& module);

}  // namespace cairn::python
