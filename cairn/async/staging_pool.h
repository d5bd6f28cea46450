// SPDX-License-Identifier: Apache-2.0
// `StagingPool`: host memory for copies of the caller's arrays. The first touch of new memory costs
// as much as several copies, so the pool keeps memory and reuses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "cairn/base/buffer.h"
#include "cairn/base/clock.h"

namespace cairn {

/// Allocated memory, in use or idle, never exceeds the limit. A buffer returns to the pool when its
/// last copy is destroyed, also after the pool. Threading: safe.
class StagingPool {
 public:
  /// `clock` must outlive the pool and every buffer.
  StagingPool(std::uint64_t limit, const Clock& clock);

  /// A buffer of `bytes`, uninitialised; nullopt if there is no room now. `resource_exhausted`:
  /// staging/too-large (above the limit), base/out-of-memory.
  Result<std::optional<Buffer>> try_take(std::uint64_t bytes);
  /// Waits until other buffers are given back.
  Result<Buffer> take(std::uint64_t bytes);

  /// Frees idle memory if nothing was in use for `idle`.
  void release_idle(std::chrono::nanoseconds idle);

  std::uint64_t limit() const;
  std::uint64_t in_use() const;
  std::uint64_t allocated() const;
  /// Largest allocated() so far.
  std::uint64_t peak() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn
