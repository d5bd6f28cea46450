// SPDX-License-Identifier: Apache-2.0
// A pool of threads. Only `background.h` and `ticker.h` make other threads, for other purposes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "cairn/async/task.h"
#include "cairn/base/result.h"

namespace cairn {

/// Runs tasks, in any order, on threads of its own. Threading: safe. Tasks report errors through
/// their results; an exception that a task throws is caught and dropped.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void add(Task task) = 0;
  /// How many tasks can run at once.
  virtual std::size_t width() const = 0;
};

/// A fixed pool. The destructor runs the tasks that were added, then joins.
std::unique_ptr<Executor> make_thread_pool(std::size_t threads);
/// Runs each task inside add(), on the caller's thread: for deterministic tests and single-threaded
/// reads.
std::unique_ptr<Executor> make_inline_executor();

/// Calls work(0) ... work(count - 1), at most executor.width() at once; the caller's thread takes
/// part. Returns when all calls that began have ended. After an error no new call begins, and the
/// error with the lowest index is returned; an exception in `work` becomes the error of
/// caught_error(). Safe to call from inside a task.
Result<void> for_each_index(Executor& executor, std::size_t count,
                            const std::function<Result<void>(std::size_t)>& work);

}  // namespace cairn
