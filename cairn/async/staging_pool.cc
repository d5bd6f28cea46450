// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/staging_pool.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>

#include "cairn/async/mutex.h"

namespace cairn {

namespace {

/// Blocks come in sizes of which there are eight between powers of two, so that one that is kept
/// fits the next save of nearly the same arrays.
std::uint64_t block_size(std::uint64_t bytes) {
  const std::uint64_t least = std::max<std::uint64_t>(bytes, 64);
  const std::uint64_t step = std::max<std::uint64_t>(std::bit_floor(least) / 8, 64);
  return (least + step - 1) / step * step;
}

}  // namespace

class StagingPool::State : public std::enable_shared_from_this<State> {
 public:
  State(std::uint64_t limit, const Clock& clock)
      : limit_(limit), clock_(clock), idle_since_(clock.monotonic()) {}

  Result<std::optional<Buffer>> take(std::uint64_t bytes, bool wait) {
    const std::uint64_t size = block_size(bytes);
    if (size > limit_) {
      return Error(Code::kResourceExhausted, "staging/too-large",
                   fmt::format("one piece of {} bytes does not fit into the staging memory of {}; "
                               "raise staging_bytes, or lower chunk_bytes",
                               bytes, limit_));
    }
    // Made before anything is taken: without memory for it, nothing is.
    const auto loan = std::make_shared<Loan>();
    {
      MutexLock lock(mutex_);
      while (!make_room(size)) {
        if (!wait) return std::optional<Buffer>();
        changed_.wait(mutex_);
      }
      CAIRN_TRY_ASSIGN(loan->block, kept_or_new(size));
      in_use_ += size;
      loan->pool = shared_from_this();
    }
    return std::optional(Buffer::borrow(loan->block.mutable_bytes().first(bytes), loan));
  }

  void release_idle(std::chrono::nanoseconds idle) {
    {
      MutexLock lock(mutex_);
      if (in_use_ > 0 || kept_.empty() || clock_.monotonic() - idle_since_ < idle) return;
      kept_.clear();
      allocated_ = 0;
    }
    malloc_trim(0);  // or the C library would keep it
  }

  std::uint64_t limit() const { return limit_; }
  std::uint64_t in_use() const {
    MutexLock lock(mutex_);
    return in_use_;
  }
  std::uint64_t allocated() const {
    MutexLock lock(mutex_);
    return allocated_;
  }
  std::uint64_t peak() const {
    MutexLock lock(mutex_);
    return peak_;
  }

 private:
  /// A block lives as long as its loan, which brings it back.
  struct Loan {
    std::shared_ptr<State> pool = {};
    Buffer block = {};
    Loan() = default;
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      if (pool) pool->give_back(block);
    }
  };

  // A block of this size is kept, or may be allocated. Others that are kept, largest first, make
  // way.
  bool make_room(std::uint64_t size) CAIRN_REQUIRES(mutex_) {
    if (kept_.contains(size)) return true;
    if (in_use_ + size > limit_) return false;
    while (allocated_ + size > limit_) {
      const auto largest = std::prev(kept_.end());
      allocated_ -= largest->first;
      largest->second.pop_back();
      if (largest->second.empty()) kept_.erase(largest);
    }
    return true;
  }

  Result<Buffer> kept_or_new(std::uint64_t size) CAIRN_REQUIRES(mutex_) {
    if (const auto found = kept_.find(size); found != kept_.end()) {
      Buffer block = std::move(found->second.back());
      found->second.pop_back();
      if (found->second.empty()) kept_.erase(found);
      return block;
    }
    CAIRN_TRY_ASSIGN(Buffer block, Buffer::allocate(size));
    allocated_ += size;
    peak_ = std::max(peak_, allocated_);
    return block;
  }

  void give_back(const Buffer& block) {
    MutexLock lock(mutex_);
    in_use_ -= block.size();
    if (!keep(block)) allocated_ -= block.size();
    idle_since_ = clock_.monotonic();
    changed_.notify_all();
  }

  // False: there is no memory to write down that it is kept, so it goes back to the system.
  bool keep(const Buffer& block) CAIRN_REQUIRES(mutex_) {
    try {
      kept_[block.size()].push_back(block);
      return true;
    } catch (const std::bad_alloc&) {
      const auto found = kept_.find(block.size());
      if (found != kept_.end() && found->second.empty()) kept_.erase(found);
      return false;
    }
  }

  const std::uint64_t limit_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::uint64_t, std::vector<Buffer>> kept_ CAIRN_GUARDED_BY(mutex_);
  std::uint64_t in_use_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::uint64_t allocated_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::uint64_t peak_ CAIRN_GUARDED_BY(mutex_) = 0;
  Clock::Mono idle_since_ CAIRN_GUARDED_BY(mutex_);
};

StagingPool::StagingPool(std::uint64_t limit, const Clock& clock)
    : state_(std::make_shared<State>(limit, clock)) {}

Result<std::optional<Buffer>> StagingPool::try_take(std::uint64_t bytes) {
  return state_->take(bytes, false);
}

Result<Buffer> StagingPool::take(std::uint64_t bytes) {
  CAIRN_TRY_ASSIGN(auto taken, state_->take(bytes, true));
  return *std::move(taken);
}

void StagingPool::release_idle(std::chrono::nanoseconds idle) { state_->release_idle(idle); }
std::uint64_t StagingPool::limit() const { return state_->limit(); }
std::uint64_t StagingPool::in_use() const { return state_->in_use(); }
std::uint64_t StagingPool::allocated() const { return state_->allocated(); }
std::uint64_t StagingPool::peak() const { return state_->peak(); }

}  // namespace cairn
