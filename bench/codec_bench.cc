// SPDX-License-Identifier: Apache-2.0
// Codecs against the bare library, on one chunk of bfloat16 weights.
#include <string>

#include <benchmark/benchmark.h>
#include <blosc.h>
#include <zlib.h>
#include <zstd.h>

#include "bench/weights.h"
#include "cairn/codec/codec.h"
#include "cairn/codec/registry.h"

namespace cairn::bench {
namespace {

constexpr std::size_t kChunk = 4 * kMiB;

const std::vector<std::byte>& chunk() {
  static const std::vector<std::byte> bytes = bfloat16_weights(kChunk);
  return bytes;
}

/// Runs `work` and counts the bytes of the chunk, which is what a save or load gets done.
template <typename Work>
void measure(benchmark::State& state, const Work& work) {
  for (auto _ : state) {
    if (!work()) state.SkipWithError("the codec failed");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kChunk));
}

std::unique_ptr<codec::Codec> make(const char* config) {
  return *codec::make_codec(*parse_json(config), 2);
}

void encode(benchmark::State& state, const char* config) {
  const auto codec = make(config);
  measure(state, [&] { return codec->encode(chunk()).has_value(); });
}

void decode(benchmark::State& state, const char* config) {
  const auto codec = make(config);
  const Buffer stored = *codec->encode(chunk());
  std::vector<std::byte> out(kChunk);
  measure(state, [&] { return codec->decode(stored.bytes(), out).has_value(); });
}

#define CAIRN_BENCH_CODEC(name, config)                                     \
  BENCHMARK_CAPTURE(encode, name, config)->Name("encode " #name "/" #name); \
  BENCHMARK_CAPTURE(decode, name, config)->Name("decode " #name "/" #name)

CAIRN_BENCH_CODEC(zstd, R"({"id":"zstd","level":1})");
CAIRN_BENCH_CODEC(zlib, R"({"id":"zlib","level":1})");
CAIRN_BENCH_CODEC(blosc, R"({"id":"blosc","cname":"lz4","clevel":5,"shuffle":2,"blocksize":0})");

std::vector<std::byte> compressed_with(const char* config) {
  const Buffer stored = *make(config)->encode(chunk());
  return {stored.bytes().begin(), stored.bytes().end()};
}

void bare_zstd_encode(benchmark::State& state) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  std::vector<std::byte> out(ZSTD_compressBound(kChunk));
  measure(state, [&] {
    return ZSTD_isError(
               ZSTD_compressCCtx(context, out.data(), out.size(), chunk().data(), kChunk, 1)) == 0;
  });
  ZSTD_freeCCtx(context);
}
BENCHMARK(bare_zstd_encode)->Name("encode zstd/limit:ZSTD_compressCCtx");

void bare_zstd_decode(benchmark::State& state) {
  const auto stored = compressed_with(R"({"id":"zstd","level":1})");
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  std::vector<std::byte> out(kChunk);
  measure(state, [&] {
    return ZSTD_decompressDCtx(context, out.data(), kChunk, stored.data(), stored.size()) == kChunk;
  });
  ZSTD_freeDCtx(context);
}
BENCHMARK(bare_zstd_decode)->Name("decode zstd/limit:ZSTD_decompressDCtx");

void bare_zlib_encode(benchmark::State& state) {
  std::vector<std::byte> out(compressBound(kChunk));
  measure(state, [&] {
    uLongf size = out.size();
    return compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                     reinterpret_cast<const Bytef*>(chunk().data()), kChunk, 1) == Z_OK;
  });
}
BENCHMARK(bare_zlib_encode)->Name("encode zlib/limit:compress2");

void bare_zlib_decode(benchmark::State& state) {
  const auto stored = compressed_with(R"({"id":"zlib","level":1})");
  std::vector<std::byte> out(kChunk);
  measure(state, [&] {
    uLongf size = kChunk;
    return uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(stored.data()), stored.size()) == Z_OK;
  });
}
BENCHMARK(bare_zlib_decode)->Name("decode zlib/limit:uncompress");

void bare_blosc_encode(benchmark::State& state) {
  std::vector<std::byte> out(kChunk + BLOSC_MAX_OVERHEAD);
  measure(state, [&] {
    return blosc_compress_ctx(5, BLOSC_BITSHUFFLE, 2, kChunk, chunk().data(), out.data(),
                              out.size(), "lz4", 0, 1) > 0;
  });
}
BENCHMARK(bare_blosc_encode)->Name("encode blosc/limit:blosc_compress_ctx");

void bare_blosc_decode(benchmark::State& state) {
  const auto stored =
      compressed_with(R"({"id":"blosc","cname":"lz4","clevel":5,"shuffle":2,"blocksize":0})");
  std::vector<std::byte> out(kChunk);
  measure(state, [&] { return blosc_decompress_ctx(stored.data(), out.data(), kChunk, 1) > 0; });
}
BENCHMARK(bare_blosc_decode)->Name("decode blosc/limit:blosc_decompress_ctx");

}  // namespace
}  // namespace cairn::bench
