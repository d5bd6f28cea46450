// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/rank_threads.h"

#include <thread>

#include "cairn/coord/in_process.h"
#include "cairn/testing/must.h"

namespace cairn::testing {

void run_ranks(int count, const std::function<void(coord::Coordinator&)>& body) {
  const auto coordinators = must(coord::make_in_process_coordinators(count));
  std::vector<std::thread> threads;
  for (const auto& coordinator : coordinators)
    threads.emplace_back([&body, &coordinator] { body(*coordinator); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cairn::testing
