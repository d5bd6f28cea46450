// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/scarce_memory.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
thread_local std::size_t g_until_failure = kNever;

}  // namespace

// Programs that link this file have these instead of the library's.
void* operator new(std::size_t size) {
  if (g_until_failure != kNever && g_until_failure-- == 0) {
    g_until_failure = kNever;
    throw std::bad_alloc();
  }
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace cairn::testing {

std::size_t fail_each_allocation(const std::function<void()>& work) {
  for (std::size_t failures = 0;; ++failures) {
    g_until_failure = failures;
    try {
      work();
    } catch (const std::bad_alloc&) {
      continue;
    }
    const bool all_went = g_until_failure != kNever;
    g_until_failure = kNever;
    if (all_went) return failures;
  }
}

}  // namespace cairn::testing
