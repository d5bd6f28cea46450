// SPDX-License-Identifier: Apache-2.0
// Copies between strided places against a plain copy of the same bytes.
#include <benchmark/benchmark.h>

#include "bench/memcpy_limit.h"
#include "bench/weights.h"
#include "cairn/array/array.h"
#include "cairn/array/strided_copy.h"

namespace cairn::bench {
namespace {

constexpr Index kColumns = 4096;
constexpr Index kRows = static_cast<Index>(kBytes) / 2 / kColumns;

void plain_copy(benchmark::State& state) { memcpy_limit(state); }
BENCHMARK(plain_copy)->Name("strided_copy/limit:memcpy");

/// bfloat16 of `shape` from strides to strides, both within kBytes.
void copy(benchmark::State& state, const Shape& shape, const Strides& from_strides,
          const Strides& to_strides) {
  const auto from = bfloat16_weights(kBytes);
  std::vector<std::byte> to(kBytes);
  std::int64_t bytes = 2;
  for (const Index size : shape) bytes *= size;
  for (auto _ : state) {
    copy_strided(shape, 2, {from.data(), &from_strides}, {to.data(), &to_strides});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

const Shape kWhole = {kRows, kColumns};
const Strides kDense = dense_strides(kWhole, 2);

BENCHMARK_CAPTURE(copy, dense, kWhole, kDense, kDense)->Name("strided_copy/dense");
BENCHMARK_CAPTURE(copy, half, (Shape{kRows, kColumns / 2}), kDense, (Strides{kColumns, 2}))
    ->Name("strided_copy/half of each row");
BENCHMARK_CAPTURE(copy, narrow, (Shape{kRows * 128, 16}), (Strides{64, 2}), (Strides{32, 2}))
    ->Name("strided_copy/32 of every 64 bytes");
BENCHMARK_CAPTURE(copy, transposed, kWhole, (Strides{2, kRows * 2}), kDense)
    ->Name("strided_copy/transposed");

void swap(benchmark::State& state, DType dtype) {
  auto bytes = bfloat16_weights(kBytes);
  for (auto _ : state) {
    swap_byte_order(dtype, bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK_CAPTURE(swap, two, DType::kUint16)->Name("strided_copy/swap 2 bytes");
BENCHMARK_CAPTURE(swap, four, DType::kFloat32)->Name("strided_copy/swap 4 bytes");

void pack(benchmark::State& state) {
  const std::vector<std::byte> from(kBytes, std::byte{5});
  std::vector<std::byte> to(kBytes / 2);
  for (auto _ : state) {
    pack_bits(4, from, to);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(pack)->Name("strided_copy/pack 4 bits");

void unpack(benchmark::State& state) {
  const std::vector<std::byte> from(kBytes / 2, std::byte{0x53});
  std::vector<std::byte> to(kBytes);
  for (auto _ : state) {
    unpack_bits(4, from, 0, to);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(unpack)->Name("strided_copy/unpack 4 bits");

}  // namespace
}  // namespace cairn::bench
