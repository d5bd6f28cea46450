// SPDX-License-Identifier: Apache-2.0
// The limit on host memory: bytes are acquired before they are allocated, and given back when their
// holder is destroyed.
#pragma once

#include <cstdint>
#include <memory>

#include "cairn/async/mutex.h"

namespace cairn {

/// Threading: safe. First come, first served, so small requests cannot starve a large one.
class ByteBudget {
 public:
  /// Bytes held; given back by the destructor. Movable. The budget must outlive it.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();
    std::uint64_t bytes() const { return bytes_; }

   private:
    friend class ByteBudget;
    Lease(ByteBudget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}
    ByteBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  explicit ByteBudget(std::uint64_t limit);

  std::uint64_t limit() const { return limit_; }
  /// Blocks until `bytes` are free. A request above the limit waits for the whole budget and takes
  /// it: callers split what they can, and a single oversized object still gets through.
  Lease acquire(std::uint64_t bytes);
  std::uint64_t in_use() const;
  /// Largest in_use() so far.
  std::uint64_t peak() const;

 private:
  void release(std::uint64_t bytes);

  const std::uint64_t limit_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::uint64_t used_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::uint64_t peak_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ticket_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::uint64_t serving_ CAIRN_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn
