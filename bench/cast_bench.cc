// SPDX-License-Identifier: Apache-2.0
// Casts against a plain copy. The rate counts bytes read and written, as a copy's does.
#include <benchmark/benchmark.h>

#include "bench/memcpy_limit.h"
#include "bench/weights.h"
#include "cairn/array/cast.h"

namespace cairn::bench {
namespace {

constexpr std::size_t kElements = kBytes / 4;

void plain_copy(benchmark::State& state) { memcpy_limit(state, 2 * kBytes); }
BENCHMARK(plain_copy)->Name("cast/limit:memcpy");

void cast(benchmark::State& state, DType from_type, DType to_type) {
  const auto weights = float_weights(kElements);
  std::vector<std::byte> from(kElements * item_size(from_type));
  cast_elements(DType::kFloat32, std::as_bytes(std::span(weights)), from_type, from);
  std::vector<std::byte> to(kElements * item_size(to_type));
  for (auto _ : state) {
    cast_elements(from_type, from, to_type, to);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size() + to.size()));
}

#define CAIRN_BENCH_CAST(from, to) \
  BENCHMARK_CAPTURE(cast, from##to, DType::k##from, DType::k##to)->Name("cast/" #from " to " #to)

CAIRN_BENCH_CAST(Float32, Bfloat16);
CAIRN_BENCH_CAST(Bfloat16, Float32);
CAIRN_BENCH_CAST(Float32, Float16);
CAIRN_BENCH_CAST(Float16, Float32);
CAIRN_BENCH_CAST(Float32, Float64);
CAIRN_BENCH_CAST(Float64, Float32);
CAIRN_BENCH_CAST(Bfloat16, Float16);
CAIRN_BENCH_CAST(Float32, Float8E4m3fn);
CAIRN_BENCH_CAST(Float8E4m3fn, Bfloat16);

}  // namespace
}  // namespace cairn::bench
