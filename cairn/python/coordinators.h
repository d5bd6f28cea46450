// SPDX-License-Identifier: Apache-2.0
// Coordinators in Python's hands, as cairn._ranks makes them.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include "cairn/coord/coordinator.h"

namespace cairn::python {

namespace nb = nanobind;

/// Of a _core.Coordinator. Its calls may come from any thread; one waits for the other.
std::shared_ptr<coord::Coordinator> coordinator_of(const nb::handle& object);

}  // namespace cairn::python
