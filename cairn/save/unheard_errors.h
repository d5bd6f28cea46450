// SPDX-License-Identifier: Apache-2.0
// Errors of background saves that nobody asks for before the program ends.
#pragma once

#include <atomic>
#include <memory>

#include "cairn/base/error.h"

namespace cairn {

/// When exit() is called or main() returns, waits for all background work; then, unless `heard` is
/// true, writes the error to standard error and turns exit status 0 into 1. Other exit handlers
/// still run. Threading: safe.
void tell_at_exit(Error error, std::shared_ptr<const std::atomic<bool>> heard);

}  // namespace cairn
