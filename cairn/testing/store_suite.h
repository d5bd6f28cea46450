// SPDX-License-Identifier: Apache-2.0
// What every store must do, as tests: a new one is done when they pass.
//
//   const bool kRegistered = register_store_suite("MemoryStore", [] { return make_memory_store();
//   });
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cairn/storage/store.h"

namespace cairn::testing {

/// A new, empty store for each test.
using StoreMaker = std::function<std::shared_ptr<storage::Store>()>;

/// Adds the tests under `name`. Call it while static objects are made, or in main().
bool register_store_suite(const std::string& name, const StoreMaker& make);

}  // namespace cairn::testing
