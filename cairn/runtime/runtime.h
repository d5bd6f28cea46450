// SPDX-License-Identifier: Apache-2.0
// `Runtime`: what a program sets up once and passes to every call. There are no hidden globals.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cairn/async/byte_budget.h"
#include "cairn/async/executor.h"
#include "cairn/async/staging_pool.h"
#include "cairn/async/ticker.h"
#include "cairn/base/clock.h"
#include "cairn/base/log.h"
#include "cairn/coord/coordinator.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

struct RuntimeOptions {
  /// Threads for reading, writing and coding. 0: one for each core, at least 4 so that a disk has
  /// several requests in flight. 1: everything on the calling thread.
  std::size_t threads = 0;
  /// Host memory that saves and loads may use in addition to the arrays of the caller. 0: 1 GiB, or
  /// an eighth of what is available if that is less.
  std::uint64_t memory_bytes = 0;
  /// Host memory for copies of the caller's arrays, which asynchronous saves write later. A save
  /// that needs more blocks until some of it is written. 0: half of what is available.
  std::uint64_t staging_bytes = 0;
  /// Staging memory that is idle for this long is freed.
  std::chrono::nanoseconds staging_idle = std::chrono::minutes(2);
  storage::FileSystem* file_system = nullptr;  ///< null: the machine's
  /// The processes of the job, which all make the same calls; used only in the thread of the
  /// caller. Null: this process is alone.
  coord::Coordinator* coordinator = nullptr;
  Clock* clock = nullptr;  ///< null: the machine's
  /// Where log entries go. Empty: nowhere, not even failures of saves in the background.
  LogSink log = log_errors;
};

/// Threading: safe. Must outlive every call that uses it.
class Runtime {
 public:
  explicit Runtime(RuntimeOptions options = {});

  /// The same with everything on the calling thread, and with a budget of its own.
  std::unique_ptr<Runtime> on_one_thread() const;

  Executor& executor() { return *executor_; }
  ByteBudget& budget() { return budget_; }
  StagingPool& staging() { return staging_; }
  /// From the first call on, idle staging memory is freed.
  void watch_staging();
  Ticker& ticker() { return ticker_; }
  storage::FileSystem& file_system() { return *file_system_; }
  /// Null if this process is alone.
  coord::Coordinator* coordinator() { return coordinator_; }
  int rank() const;
  int ranks() const;
  Clock& clock() { return *clock_; }
  void log(LogLevel level, const char* event, std::string message) const;

 private:
  std::unique_ptr<Executor> executor_;
  ByteBudget budget_;
  storage::FileSystem* file_system_;
  coord::Coordinator* coordinator_;
  Clock* clock_;
  StagingPool staging_;
  const std::chrono::nanoseconds staging_idle_;
  LogSink log_;
  Ticker ticker_;
  std::once_flag watched_;
  Ticker::Subscription staging_watch_;
};

/// Half of the memory that is free to this process, cgroup limits respected, at least 100 MiB.
std::uint64_t estimate_available_memory();
/// Memory and swap of the machine, or of the tightest cgroup of this process.
std::uint64_t memory_of_machine();
/// The most memory that this process can ever have: memory_of_machine(), and no more than its
/// address space (`ulimit -v`).
std::uint64_t largest_possible_memory();
/// `resource_exhausted` (load/no-memory) if `what` needs more than that; `advice` ends the
/// sentence. The system hands out memory page by page as it is written, so without this check a
/// process that asks for too much would run for long before it is killed. Skipped below 256 MiB.
Result<void> check_possible_memory(std::uint64_t bytes, std::string_view what,
                                   std::string_view advice = "");

}  // namespace cairn
