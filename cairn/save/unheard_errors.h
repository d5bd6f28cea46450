// SPDX-License-Identifier: Apache-2.0
// Errors of saves in the background that nobody asks for until the program ends.
#pragma once

#include <atomic>
#include <memory>

#include "cairn/base/error.h"

namespace cairn {

/// When exit() is called or main() returns, all that goes on in the background is waited for; then,
/// unless `heard` is true, the error goes to standard error, and an exit status of 0 becomes 1.
/// What else is to be done at the exit is done. Threading: safe.
void tell_at_exit(Error error, std::shared_ptr<const std::atomic<bool>> heard);

}  // namespace cairn
