// SPDX-License-Identifier: Apache-2.0
// Coordinators in Python's hands, as cairn._ranks makes them.
#pragma once

#include <memory>
#include <string>

#include <nanobind/nanobind.h>

#include "cairn/coord/coordinator.h"
#include "cairn/python/failure.h"

namespace cairn::python {

namespace nb = nanobind;

/// The coordinator of a _core.Coordinator. Its calls may come from any thread, and run one at a
/// time.
std::shared_ptr<coord::Coordinator> coordinator_of(const nb::handle& object);

/// `failed_precondition` (python/other-ranks): the job has other ranks than a call needs.
Failure other_ranks(const std::string& sentence);

}  // namespace cairn::python
