// SPDX-License-Identifier: Apache-2.0
// Makes std::bad_alloc happen at each place where it can.
#pragma once

#include <cstddef>
#include <functional>

namespace cairn::testing {

/// Calls `work` repeatedly: its first allocation fails, then its second, and so on, until none
/// does. Returns how many calls ended with std::bad_alloc. Only allocations of this thread fail.
std::size_t fail_each_allocation(const std::function<void()>& work);

}  // namespace cairn::testing
