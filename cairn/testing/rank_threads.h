// SPDX-License-Identifier: Apache-2.0
// Ranks as threads, for tests of what a job does together.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/coord/coordinator.h"

namespace cairn::testing {

/// Runs `body` once for each of `count` ranks, all at the same time, and waits for them.
void run_ranks(int count, const std::function<void(coord::Coordinator&)>& body);

/// The same; what `body` returns, by rank.
template <typename Body>
auto by_rank(int count, const Body& body) {
  using Returned = decltype(body(std::declval<coord::Coordinator&>()));
  std::vector<std::optional<Returned>> returned(static_cast<std::size_t>(count));
  run_ranks(count, [&](coord::Coordinator& coordinator) {
    returned[static_cast<std::size_t>(coordinator.rank())] = body(coordinator);
  });
  std::vector<Returned> all;
  for (auto& one : returned) all.push_back(*std::move(one));
  return all;
}

}  // namespace cairn::testing
