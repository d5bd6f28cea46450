// SPDX-License-Identifier: Apache-2.0
// Work that continues after the call that started it has returned, each piece on its own thread.
#pragma once

#include "cairn/async/deadline.h"
#include "cairn/async/task.h"

namespace cairn {

/// Runs `work` on a new thread. The process waits for it before it ends, so nothing is lost even if
/// nobody waits for the result.
void run_in_background(Task work);

/// Runs `work` on a new thread for a caller who waits for it, but may give up. The process waits
/// for it before it ends. is_background_thread() is false there, because the thread acts for its
/// caller.
void run_aside(Task work);

/// Is this a thread of run_in_background()?
bool is_background_thread();

/// Waits until everything started here has ended and released what it owned; runs at the end of the
/// process. REQUIRES: !is_background_thread().
void wait_for_background();
/// The same with a time limit; true if everything has ended.
bool wait_for_background_until(Deadline deadline);

}  // namespace cairn
