// SPDX-License-Identifier: Apache-2.0
// `StagingPool`: host memory for copies of the caller's arrays. Memory that was never touched costs
// many copies, so it is kept and used again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "cairn/base/buffer.h"
#include "cairn/base/clock.h"

namespace cairn {

/// What it has allocated, in use or kept, never exceeds the limit. A buffer goes back when its last
/// copy is destroyed, also after the pool. Threading: safe.
class StagingPool {
 public:
  /// `clock` must outlive the pool and every buffer.
  StagingPool(std::uint64_t limit, const Clock& clock);

  /// A buffer of `bytes`, uninitialised; nothing if it must be waited for. `resource_exhausted`:
  /// staging/too-large (above the limit), base/out-of-memory.
  Result<std::optional<Buffer>> try_take(std::uint64_t bytes);
  /// Waits for others to give back.
  Result<Buffer> take(std::uint64_t bytes);

  /// Frees what is kept if nothing was in use for `idle`.
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
