// SPDX-License-Identifier: Apache-2.0
// `MetricsFile`: metrics of saves in a file in Prometheus' text format, for node_exporter's
// textfile collector and similar tools.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/async/mutex.h"
#include "cairn/runtime/runtime.h"
#include "cairn/save/save_async.h"

namespace cairn {

/// The samples. An empty one is not known yet, and left out.
struct Metrics {
  std::uint64_t saves = 0;     ///< committed, since the job began
  std::uint64_t failures = 0;  ///< that ended with an error, or could not begin
  std::uint64_t in_flight = 0;
  // Of the last that was committed.
  std::optional<std::int64_t> last_step = {};
  std::optional<Clock::Wall> last_time = {};
  std::optional<double> seconds = {};        ///< from the call to the end
  std::optional<double> stall_seconds = {};  ///< during which the caller was blocked
  std::optional<std::uint64_t> bytes = {};   ///< of elements; of callbacks' saves, not known
  std::uint64_t staging_in_use = 0;
  std::uint64_t staging_limit = 0;
};
/// Pure. `run` becomes a label of every sample; of what is no UTF-8 in it, the beginning is taken.
std::string format_metrics(const Metrics& metrics, std::string_view run);

/// Replaced by rename whenever a save begins or ends; never synced. A failure to write it is logged
/// once (metrics/not-written) and affects no save. Counters start at 0 with the job. Only rank 0
/// writes. Threading: safe. Create it with make(): it lives until the last save it follows ends.
class MetricsFile : public std::enable_shared_from_this<MetricsFile> {
 public:
  /// `base` is the run directory, whose name becomes the label `run`.
  static std::shared_ptr<MetricsFile> make(std::string path, const std::string& base,
                                           std::shared_ptr<Runtime> runtime);

  /// Follows a background save to its end. `stall`: how long the call that began it took.
  void began(const SaveHandle& handle, std::optional<std::int64_t> step,
             std::chrono::nanoseconds stall);
  /// A save failed before it had a handle.
  void failed();

 private:
  MetricsFile(std::string path, std::string run, std::shared_ptr<Runtime> runtime);
  /// What is known of a save when it begins.
  struct Begun {
    std::optional<std::int64_t> step;
    std::chrono::nanoseconds stall;
    Clock::Mono called;
  };
  void ended(const Result<SaveReport>& result, const Begun& save);
  void write() CAIRN_REQUIRES(mutex_);

  const std::string path_;
  const std::string run_;
  const std::shared_ptr<Runtime> runtime_;
  Mutex mutex_;
  Metrics now_ CAIRN_GUARDED_BY(mutex_);
  bool complained_ CAIRN_GUARDED_BY(mutex_) = false;
};

}  // namespace cairn
