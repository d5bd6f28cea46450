// SPDX-License-Identifier: Apache-2.0
// Saves on a signal: a cluster sends SIGTERM before it takes the machine back. Opt-in; nothing else
// in the library installs a signal handler.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "cairn/base/result.h"

namespace cairn {

/// Watches signals until destroyed, then restores the previous handlers. One watch per signal at a
/// time. Threading: safe.
class SignalWatch {
 public:
  struct Options {
    std::vector<int> save = {};           ///< such as SIGUSR1: save and go on
    std::vector<int> save_and_stop = {};  ///< such as SIGTERM: save, then the program should end
  };
  /// `invalid_argument` (signals/unknown), `failed_precondition` (signals/taken).
  static Result<std::unique_ptr<SignalWatch>> make(const Options& options);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// A signal came since the last answered().
  bool is_requested() const;
  void answered();
  /// A signal of save_and_stop has come.
  bool should_stop() const;

 private:
  explicit SignalWatch(Options options);
  struct Old;
  const Options options_;
  std::vector<Old> old_;
  std::atomic<bool> stop_ = false;
};

}  // namespace cairn
