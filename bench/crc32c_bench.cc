// SPDX-License-Identifier: Apache-2.0
// Checksums against a plain copy of the same bytes.
#include <benchmark/benchmark.h>

#include "bench/memcpy_limit.h"
#include "bench/weights.h"
#include "cairn/base/crc32c.h"

namespace cairn::bench {
namespace {

void plain_copy(benchmark::State& state) { memcpy_limit(state); }
BENCHMARK(plain_copy)->Name("crc32c/limit:memcpy");

void sum(benchmark::State& state) {
  const auto from = bfloat16_weights(kBytes);
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(from));
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(sum)->Name("crc32c/crc32c");

void copy_and_sum(benchmark::State& state) {
  const auto from = bfloat16_weights(kBytes);
  std::vector<std::byte> to(kBytes);
  for (auto _ : state) benchmark::DoNotOptimize(copy_crc32c(to, from));
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(copy_and_sum)->Name("crc32c/copy_crc32c");

}  // namespace
}  // namespace cairn::bench
