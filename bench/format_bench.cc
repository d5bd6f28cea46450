// SPDX-License-Identifier: Apache-2.0
// Metadata against the JSON parser below it, chunks against a plain copy.
#include <string>

#include <benchmark/benchmark.h>

#include "bench/memcpy_limit.h"
#include "bench/weights.h"
#include "cairn/base/json.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/safetensors/header.h"
#include "cairn/format/safetensors/header_parser.h"
#include "cairn/format/zarr2/metadata.h"

namespace cairn::bench {
namespace {

constexpr std::size_t kTensors = 10'000;

std::vector<format::safetensors::Tensor> make_tensors() {
  std::vector<format::safetensors::Tensor> tensors(kTensors);
  for (std::size_t i = 0; i < kTensors; ++i) {
    tensors[i].name = "model.layers." + std::to_string(i) + ".attention.query.kernel";
    tensors[i].dtype = DType::kBfloat16;
    tensors[i].shape = {64, 32};
  }
  return tensors;
}

struct HeaderText {
  std::string json;
  std::uint64_t file_size = 0;
};

HeaderText header_text() {
  auto tensors = make_tensors();
  const std::string header = *format::safetensors::make_header(tensors, {});
  return {header.substr(format::safetensors::kLengthBytes), header.size() + tensors.back().end};
}

void count_tensors(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kTensors));
}

void json_of_header(benchmark::State& state) {
  const HeaderText text = header_text();
  for (auto _ : state) benchmark::DoNotOptimize(parse_json(text.json));
  count_tensors(state);
}
BENCHMARK(json_of_header)->Name("safetensors parse/limit:parse_json");

void parse_header(benchmark::State& state) {
  const HeaderText text = header_text();
  for (auto _ : state) {
    benchmark::DoNotOptimize(format::safetensors::parse_header(text.json, text.file_size));
  }
  count_tensors(state);
}
BENCHMARK(parse_header)->Name("safetensors parse/parse_header");

void dump_header(benchmark::State& state) {
  const Json header = *parse_json(header_text().json);
  for (auto _ : state) benchmark::DoNotOptimize(dump_json(header));
  count_tensors(state);
}
BENCHMARK(dump_header)->Name("safetensors make/limit:dump_json");

void make_header(benchmark::State& state) {
  auto tensors = make_tensors();
  for (auto _ : state) benchmark::DoNotOptimize(format::safetensors::make_header(tensors, {}));
  count_tensors(state);
}
BENCHMARK(make_header)->Name("safetensors make/make_header");

format::StoredArray zarr_array() {
  format::StoredArray array;
  array.dtype = DType::kBfloat16;
  array.shape = {static_cast<Index>(kBytes / 2)};
  array.chunk_shape = array.shape;
  return array;
}

void json_of_metadata(benchmark::State& state) {
  const std::string text = *format::zarr2::dump_metadata(zarr_array());
  for (auto _ : state) benchmark::DoNotOptimize(parse_json(text));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(json_of_metadata)->Name("zarr2 parse/limit:parse_json");

void parse_metadata(benchmark::State& state) {
  const std::string text = *format::zarr2::dump_metadata(zarr_array());
  for (auto _ : state) benchmark::DoNotOptimize(format::zarr2::parse_metadata(text));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(parse_metadata)->Name("zarr2 parse/parse_metadata");

void plain_copy(benchmark::State& state) { memcpy_limit(state); }
BENCHMARK(plain_copy)->Name("raw chunk/limit:memcpy");

void decode_raw(benchmark::State& state) {
  const auto stored = bfloat16_weights(kBytes);
  const auto codec = *format::ChunkCodec::make(zarr_array());
  std::vector<std::byte> out(kBytes);
  for (auto _ : state) {
    if (!codec.decode(stored, out)) state.SkipWithError("could not decode");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kBytes));
}
BENCHMARK(decode_raw)->Name("raw chunk/ChunkCodec::decode");

}  // namespace
}  // namespace cairn::bench
