// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/byte_budget.h"

#include <algorithm>
#include <utility>

namespace cairn {

ByteBudget::Lease::Lease(Lease&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

ByteBudget::Lease& ByteBudget::Lease::operator=(Lease&& other) noexcept {
  Lease old(std::move(other));
  std::swap(budget_, old.budget_);
  std::swap(bytes_, old.bytes_);
  return *this;
}

ByteBudget::Lease::~Lease() {
  if (budget_ != nullptr) budget_->release(bytes_);
}

ByteBudget::ByteBudget(std::uint64_t limit) : limit_(limit) {}

ByteBudget::Lease ByteBudget::acquire(std::uint64_t bytes) {
  const std::uint64_t wanted = std::min(bytes, limit_);
  if (wanted == 0) return {};
  MutexLock lock(mutex_);
  const std::uint64_t ticket = next_ticket_++;
  while (serving_ != ticket || wanted > limit_ - used_) changed_.wait(mutex_);
  ++serving_;
  used_ += wanted;
  peak_ = std::max(peak_, used_);
  changed_.notify_all();  // there may be room for the next ticket too
  return {this, wanted};
}

std::uint64_t ByteBudget::in_use() const {
  MutexLock lock(mutex_);
  return used_;
}

std::uint64_t ByteBudget::peak() const {
  MutexLock lock(mutex_);
  return peak_;
}

void ByteBudget::release(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  used_ -= bytes;
  changed_.notify_all();
}

}  // namespace cairn
