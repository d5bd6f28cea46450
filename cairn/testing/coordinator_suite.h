// SPDX-License-Identifier: Apache-2.0
// What every coordinator must do, as tests: a new one is done when they pass. Each test is a
// program that all ranks run, as threads or as processes.
//
//   const bool kRegistered = register_coordinator_suite("InProcess", 4, [](int count) {
//     return must(make_in_process_coordinators(count));
//   });
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cairn/coord/coordinator.h"

namespace cairn::testing {

using Coordinators = std::vector<std::unique_ptr<coord::Coordinator>>;

/// New coordinators for each test: those of the ranks that live in this process.
using CoordinatorsMaker = std::function<Coordinators(int count)>;

/// Adds the tests for `count` ranks, as "<name>Of<count>". Call it while static objects are made,
/// or in main().
bool register_coordinator_suite(const std::string& name, int count, const CoordinatorsMaker& make);

/// Runs `body` for each coordinator at once, each on a thread of its own. An exception fails the
/// test.
void run_ranks(const Coordinators& coordinators,
               const std::function<void(coord::Coordinator&)>& body);

}  // namespace cairn::testing
