// SPDX-License-Identifier: Apache-2.0
// Work that goes on when the call that began it has returned, each piece on a thread of its own.
#pragma once

#include "cairn/async/deadline.h"
#include "cairn/async/task.h"

namespace cairn {

/// Runs `work` on a new thread. The end of the process waits for it, so nothing is lost when
/// everybody has forgotten it.
void run_in_background(Task work);

/// Runs `work` on a new thread for a caller who waits for it but may stop waiting. The end of the
/// process waits for it too; is_background_thread() is false there: it acts for its caller.
void run_aside(Task work);

/// Is this a thread of run_in_background()?
bool is_background_thread();

/// Until all that was begun has ended, and what it owned is gone. The end of the process does this.
/// REQUIRES: !is_background_thread().
void wait_for_background();
/// The same, but not for longer: has all of it ended?
bool wait_for_background_until(Deadline deadline);

}  // namespace cairn
