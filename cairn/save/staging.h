// SPDX-License-Identifier: Apache-2.0
// The hand-over of a save's bytes: the caller's thread copies them, the background writes them. The
// caller is free when the last byte is copied; what does not fit into the pool waits for what is
// written.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "cairn/async/mutex.h"
#include "cairn/save/save_prepared.h"

namespace cairn {

/// The jobs of one save on their way from one side to the other. The writers must outlive it.
/// Threading: safe, for one caller of stage() and one of write().
class Staging {
 public:
  Staging(const Writers& writers, Runtime& runtime);

  /// Copies the elements of every job that may change; the others are read when they are written.
  /// Returns when nothing of the caller's memory is needed any longer, or the writing has failed.
  Result<void> stage();
  /// Nothing more comes, for this reason.
  void fail(const Error& error);

  /// Writes jobs as they come, on all threads, until all are written or one fails. The writers are
  /// open.
  Result<void> write(const ProgressSink& progress);

 private:
  struct Job {
    ArrayWriter* writer = nullptr;
    const WriteJob* job = nullptr;
    Buffer staged = {};  // empty: the writer reads the elements where they lie
    bool copied = false;
  };

  Result<void> copy(Job& job, Buffer buffer);
  Result<void> copy_what_fits();
  Result<void> copy_the_rest();
  void hand_over(std::size_t index) CAIRN_REQUIRES(mutex_);
  bool has_failed();
  void wait_for_the_first();
  /// Nothing: all are written, or writing has failed.
  std::optional<std::size_t> next();
  Result<void> write_job(Job& job);

  Runtime& runtime_;
  std::vector<ArrayWriter*> writers_;
  std::vector<Job> jobs_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::size_t> ready_ CAIRN_GUARDED_BY(mutex_);
  bool begun_ CAIRN_GUARDED_BY(mutex_) = false;
  std::size_t handed_over_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::optional<Error> failure_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace cairn
