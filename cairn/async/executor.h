// SPDX-License-Identifier: Apache-2.0
// A pool of threads. `background.h` and `ticker.h` make some for other ends; nobody outside this
// room does.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "cairn/async/task.h"
#include "cairn/base/result.h"

namespace cairn {

/// Runs tasks, in any order, on threads of its own. Threading: safe. A task that throws ends the
/// program's promise that nothing throws: the exception is caught and dropped, so tasks carry
/// results.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void add(Task task) = 0;
  /// How many tasks can run at once.
  virtual std::size_t width() const = 0;
};

/// A fixed pool. The destructor runs what was added, then joins.
std::unique_ptr<Executor> make_thread_pool(std::size_t threads);
/// Runs each task in add(), on the caller's thread: deterministic tests, one reader.
std::unique_ptr<Executor> make_inline_executor();

/// Calls work(0) ... work(count - 1), at most executor.width() at once, the caller's thread taking
/// part; returns when all that were begun have ended. The error with the lowest index is returned,
/// and no new index begins after one failed; an exception in `work` is the error of
/// caught_error(). Safe to call from inside a task.
Result<void> for_each_index(Executor& executor, std::size_t count,
                            const std::function<Result<void>(std::size_t)>& work);

}  // namespace cairn
