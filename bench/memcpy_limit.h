// SPDX-License-Identifier: Apache-2.0
// The limit of everything that moves bytes: a plain copy of as many.
#pragma once

#include <benchmark/benchmark.h>

#include "bench/weights.h"

namespace cairn::bench {

/// Copies kBytes; `counted` is what the rate counts of each copy.
inline void memcpy_limit(benchmark::State& state, std::size_t counted = kBytes) {
  const auto from = bfloat16_weights(kBytes);
  std::vector<std::byte> to(kBytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kBytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(counted));
}

}  // namespace cairn::bench
