// SPDX-License-Identifier: Apache-2.0
// Hands the bytes of a save over: the thread of the caller copies them, the background writes them.
// The caller continues once the last byte is copied. It blocks while the pool is full, until some
// bytes are written.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "cairn/async/mutex.h"
#include "cairn/save/save_prepared.h"

namespace cairn {

/// The jobs of one save between the two sides. The writers must outlive it. Threading: safe, for
/// one caller of stage() and one of write().
class Staging {
 public:
  Staging(const Writers& writers, Runtime& runtime);

  /// Copies the elements of every job that may change; the others are read when they are written.
  /// Returns when the memory of the caller is no longer needed, or the writing has failed.
  Result<void> stage();
  /// Ends the staging early, with this error.
  void fail(const Error& error);

  /// Writes jobs as they arrive, on all threads, until all are written or one fails. The writers
  /// must be open.
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
  /// nullopt: all are written, or writing has failed.
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
