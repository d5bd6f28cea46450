// SPDX-License-Identifier: Apache-2.0
// Reports the progress of one operation to its caller.
#pragma once

#include <cstdint>
#include <functional>

#include "cairn/async/mutex.h"

namespace cairn {

/// Called with bytes done and total bytes, first with 0; from any thread, one call at a time.
using ProgressSink = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Counts for a sink that must outlive it; an empty sink costs nothing. Threading: safe.
class Progress {
 public:
  Progress(const ProgressSink& sink, std::uint64_t total) : sink_(sink), total_(total) {
    if (sink_) sink_(0, total_);
  }
  void add(std::uint64_t bytes) {
    if (!sink_) return;
    MutexLock lock(mutex_);
    done_ += bytes;
    sink_(done_, total_);
  }

 private:
  const ProgressSink& sink_;
  const std::uint64_t total_;
  Mutex mutex_;
  std::uint64_t done_ CAIRN_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn
