// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/codec.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "cairn/base/base64.h"
#include "cairn/codec/registry.h"

namespace cairn::codec {
namespace {

std::unique_ptr<Codec> codec_of(const std::string& config, std::size_t item_size = 4) {
  auto codec = make_codec(*parse_json(config), item_size);
  EXPECT_TRUE(codec) << config << ": " << codec.error().to_string();
  return *std::move(codec);
}

/// Bytes that compress somewhat: runs of equal 32-bit numbers among random ones.
std::string sample(std::size_t size, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::string bytes;
  while (bytes.size() < size) {
    const auto number = static_cast<std::uint32_t>(random());
    for (auto i = random() % 9; i-- > 0;) {
      bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
  }
  bytes.resize(size);
  return bytes;
}

std::string encoded(const Codec& codec, std::string_view raw) {
  const auto stored = codec.encode(as_bytes(raw));
  EXPECT_TRUE(stored) << stored.error().to_string();
  return std::string(as_text(stored->bytes()));
}

/// Decodes between two guards that must stay as they are.
Result<std::string> decoded(const Codec& codec, std::string_view stored, std::size_t size) {
  const std::string guard(64, '\x5a');
  std::string space = guard + std::string(size, '?') + guard;
  const MutableByteSpan out(reinterpret_cast<std::byte*>(space.data()) + guard.size(), size);
  // A copy of exactly its size, so that the sanitizer sees a read beyond it.
  const std::vector<char> exact(stored.begin(), stored.end());
  const auto result = codec.decode(as_bytes({exact.data(), exact.size()}), out);
  EXPECT_TRUE(space.starts_with(guard) && space.ends_with(guard)) << "wrote outside the chunk";
  if (!result) return result.error();
  return space.substr(guard.size(), size);
}

/// "ok", or the reason.
std::string outcome(const Codec& codec, std::string_view stored, std::size_t size) {
  const auto result = decoded(codec, stored, size);
  if (result) return "ok";
  EXPECT_EQ(result.error().code(), Code::kCorrupt) << result.error().to_string();
  return std::string(result.error().reason());
}

std::vector<std::string> stream_configs() {
  return {R"({"id":"zstd"})",
          R"({"id":"zstd","level":-131072})",
          R"({"id":"zstd","level":-5})",
          R"({"id":"zstd","level":0})",
          R"({"id":"zstd","level":3,"checksum":true})",
          R"({"id":"zstd","level":22})",
          R"({"id":"gzip"})",
          R"({"id":"gzip","level":0})",
          R"({"id":"gzip","level":9})",
          R"({"id":"zlib"})",
          R"({"id":"zlib","level":0})",
          R"({"id":"zlib","level":9})",
          R"({"id":"bz2"})",
          R"({"id":"bz2","level":9})"};
}

std::vector<std::string> blosc_configs() {
  std::vector<std::string> configs = {R"({"id":"blosc"})", R"({"id":"blosc","clevel":0})",
                                      R"({"id":"blosc","blocksize":256})",
                                      R"({"id":"blosc","blocksize":2147483647,"clevel":9})"};
  for (const char* inner : {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"}) {
    for (const char* shuffle : {"-1", "0", "1", "2"}) {
      configs.push_back(std::string(R"({"id":"blosc","cname":")") + inner + R"(","shuffle":)" +
                        shuffle + "}");
    }
  }
  return configs;
}

/// One of each codec, for damages.
std::vector<std::string> plain_configs() {
  return {R"({"id":"zstd"})", R"({"id":"zstd","checksum":true})",
          R"({"id":"gzip"})", R"({"id":"zlib"})",
          R"({"id":"bz2"})",  R"({"id":"blosc"})"};
}

std::string id_of(const std::string& config) { return *parse_json(config)->find("id")->text(); }

const std::vector<std::size_t> kSizes = {0, 1, 2, 7, 127, 128, 129, 1000, 65536, (1U << 20) + 7};

TEST(Codec, DecodesWhatItEncoded) {
  for (const std::string& config : stream_configs()) {
    const auto codec = codec_of(config);
    for (std::size_t size : kSizes) {
      const std::string raw = sample(size);
      const auto back = decoded(*codec, encoded(*codec, raw), size);
      ASSERT_TRUE(back) << config << " " << size << ": " << back.error().to_string();
      EXPECT_TRUE(*back == raw) << config << " " << size;
    }
  }
}

TEST(Codec, BloscDecodesWhatItEncodedForEveryItemSize) {
  for (const std::string& config : blosc_configs()) {
    for (std::size_t item_size : {1U, 2U, 3U, 4U, 8U, 16U, 300U}) {
      const auto codec = codec_of(config, item_size);
      for (std::size_t size : kSizes) {
        if (size > 65536 && item_size != 2) continue;
        const std::string raw = sample(size);
        const auto back = decoded(*codec, encoded(*codec, raw), size);
        ASSERT_TRUE(back) << config << " " << size << ": " << back.error().to_string();
        EXPECT_TRUE(*back == raw) << config << " " << item_size << " " << size;
      }
    }
  }
}

TEST(Codec, HoldsBytesThatDoNotCompressAndBytesThatAllAreEqual) {
  std::mt19937 random(7);
  std::string noise(300'001, '\0');
  std::ranges::generate(noise, [&] { return static_cast<char>(random()); });
  const std::string zeros(300'001, '\0');
  for (const std::string& config : plain_configs()) {
    const auto codec = codec_of(config);
    EXPECT_TRUE(decoded(*codec, encoded(*codec, noise), noise.size()).value_or("") == noise);
    const std::string stored = encoded(*codec, zeros);
    EXPECT_TRUE(decoded(*codec, stored, zeros.size()).value_or("") == zeros) << config;
    EXPECT_LT(stored.size(), zeros.size() / 50) << config;
  }
}

TEST(Codec, IsSafeToShareBetweenThreads) {
  for (const std::string& config : plain_configs()) {
    const auto codec = codec_of(config);
    std::vector<std::thread> threads;
    for (std::uint32_t seed = 0; seed < 3; ++seed) {
      threads.emplace_back([&codec, seed] {
        const std::string raw = sample(20'000, seed);
        for (int i = 0; i < 5; ++i) {
          EXPECT_TRUE(decoded(*codec, encoded(*codec, raw), raw.size()).value_or("") == raw);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

struct Foreign {
  const char* writer;
  const char* config;
  const char* base64;
};

// 256 little-endian 32-bit integers i / 32, as others store them.
const Foreign kForeign[] = {
    {"Python zlib", R"({"id":"zlib"})", "eNpjYBhYwDjAmGmAMfMAY5YBxqwDjNkGGLMPMAYAazwDgQ=="},
    {"Python gzip, with a file name", R"({"id":"gzip"})",
     "H4sICAEAAAAC/25hbWUuYmluAGNgGFjAOMCYaYAx8wBjlgHGrAOM2QYYsw8wBgCNt1UrAAQAAA=="},
    {"Python bz2", R"({"id":"bz2"})",
     "QlpoOTFBWSZTWWQAAGYAAAHAgH+AAAQgAFCDJiApShp6jcugdg8BwHoNqtqs2BX2Ar8XckU4UJBk"
     "AABm"},
    {"zstd command, no content size", R"({"id":"zstd"})",
     "KLUv/QBY5QAASAAAAQIDBAUGBwgEKhwIB8cB40A4OA4Y34kNsA=="},
    {"zstd command, with a checksum", R"({"id":"zstd"})",
     "KLUv/QRY5QAASAAAAQIDBAUGBwgEKhwIB8cB40A4OA4Y34kNsDzxFMw="},
    {"numcodecs blosc with blosclz", R"({"id":"blosc"})",
     "AgEBBAAEAAAABAAAfgAAABQAAAA2AAAAIwAAAADgEgMBAAHgFQABAQLgFQABAgPgFQABAwTgFQAB"
     "BAXgFQABBQbgFQABBgfgEwACBwcHDAAAACMAAAAA4PADAgAAAAwAAAAjAAAAAODwAwIAAAAMAAAA"
     "IwAAAADg8AMCAAAA"},
    {"numcodecs blosc with lz4", R"({"id":"blosc"})",
     "AgEhBAAEAAAABAAAcwAAABQAAAAuAAAAHwABAAwfAQEADB8CAQAMHwMBAAwfBAEADB8FAQAMHwYB"
     "AAwfBwEAB1AHBwcHBwsAAAAfAAEA51AAAAAAAAsAAAAfAAEA51AAAAAAAAsAAAAfAAEA51AAAAAA"
     "AA=="},
    {"numcodecs blosc with lz4hc", R"({"id":"blosc"})",
     "AgEgBAAEAAAABAAAbQAAABQAAAAQAAAAHwABAGwfAQQAZ1AAAQAAABMAAABPAgAAAAQAaR8DBABn"
     "UAADAAAAEwAAAE8EAAAABABpHwUEAGdQAAUAAAATAAAATwYAAAAEAGkfBwQAZ1AABwAAAA=="},
    {"numcodecs blosc with zlib", R"({"id":"blosc"})",
     "AgFhBAAEAAAABAAAZwAAABQAAAAfAAAAeNpjYMAPGAkAJgKAmQBgIQBYCQA2AoCdAAAAGs8DgQwA"
     "AAB42mNgGNkAAAEAAAEMAAAAeNpjYBjZAAABAAABDAAAAHjaY2AY2QAAAQAAAQ=="},
    {"numcodecs blosc with zstd", R"({"id":"blosc"})",
     "AgGUBAAEAAAABAAAPQAAABQAAAAlAAAAKLUv/WAAA90AAKLBAgbgDwBgTAoCPDwEBACcQSXe7sxk"
     "eOZyAQ=="},
    {"TensorStore blosc with snappy", R"({"id":"blosc"})",
     "AgFBBAAEAAAABAAAfgAAABQAAAAqAAAAgAIAAHoBAAABegEAAAJ6AQAAA3oBAAAEegEAAAV6AQAA"
     "BnoBAAAHegEAEAAAAIACAAD+AQD+AQD+AQD6AQAQAAAAgAIAAP4BAP4BAP4BAPoBABAAAACAAgAA"
     "/gEA/gEA/gEA+gEA"},
};

TEST(Codec, ReadsWhatOthersWrote) {
  std::string raw;
  for (std::int32_t i = 0; i < 256; ++i) {
    const std::int32_t value = i / 32;
    raw.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  for (const Foreign& foreign : kForeign) {
    const auto codec = codec_of(foreign.config);
    const auto back = decoded(*codec, *decode_base64(foreign.base64), raw.size());
    ASSERT_TRUE(back) << foreign.writer << ": " << back.error().to_string();
    EXPECT_EQ(*back, raw) << foreign.writer;
  }
}

struct NamedDamage {
  const char* name;
  std::string stored;
  const char* reason;
};

TEST(Codec, RefusesEachDamageWithItsReason) {
  const std::string raw = sample(999);
  for (const std::string& config : plain_configs()) {
    const auto codec = codec_of(config);
    const std::string good = encoded(*codec, raw);
    const NamedDamage damages[] = {
        {"none", good, "ok"},
        {"cut in the middle", good.substr(0, good.size() / 2), "/truncated"},
        {"without its last byte", good.substr(0, good.size() - 1), "/truncated"},
        {"empty", "", "/truncated"},
        {"a byte after it", good + '\0', "/trailing-bytes"},
        {"twice", good + good, "/trailing-bytes"},
        {"a whole stream of fewer bytes", encoded(*codec, raw.substr(4)), "/too-short"},
        {"a whole stream of one byte less", encoded(*codec, raw.substr(1)), "/too-short"},
        {"a whole stream of one byte more", encoded(*codec, raw + "m"), "/too-long"},
        {"a whole stream of no bytes", encoded(*codec, ""), "/too-short"},
        {"a whole stream of more bytes", encoded(*codec, raw + "more"), "/too-long"},
        {"a bomb", encoded(*codec, std::string(8 << 20, '\0')), "/too-long"},
        {"not a stream", "this is not a stream of any kind, but it is long enough", "/invalid"},
        {"zeros", std::string(100, '\0'), "/invalid"},
    };
    for (const NamedDamage& damage : damages) {
      const std::string want =
          damage.reason == std::string("ok") ? "ok" : id_of(config) + damage.reason;
      EXPECT_EQ(outcome(*codec, damage.stored, raw.size()), want) << config << ": " << damage.name;
    }
  }
}

TEST(Codec, RefusesEveryProperPrefixAsTruncated) {
  const std::string raw = sample(300);
  for (const std::string& config : plain_configs()) {
    const auto codec = codec_of(config);
    const std::string good = encoded(*codec, raw);
    for (std::size_t size = 0; size < good.size(); ++size) {
      EXPECT_EQ(outcome(*codec, good.substr(0, size), raw.size()), id_of(config) + "/truncated")
          << config << " cut to " << size << " of " << good.size();
    }
  }
}

TEST(Codec, SaysChecksumWhereOnlyTheSumIsWrong) {
  const std::string raw = sample(999);
  struct Sum {
    const char* config;
    std::size_t from_end;
  };
  for (const Sum& sum : {Sum{R"({"id":"zlib"})", 1}, Sum{R"({"id":"gzip"})", 1},
                         Sum{R"({"id":"gzip"})", 5}, Sum{R"({"id":"zstd","checksum":true})", 1}}) {
    const auto codec = codec_of(sum.config);
    std::string stored = encoded(*codec, raw);
    stored[stored.size() - sum.from_end] ^= 1;
    EXPECT_EQ(outcome(*codec, stored, raw.size()), id_of(sum.config) + "/checksum");
  }
}

TEST(Codec, NeverGivesOtherBytesForAFlippedBitWhereThereIsAChecksum) {
  const std::string raw = sample(200);
  for (const std::string& config : plain_configs()) {
    const auto codec = codec_of(config);
    const bool has_checksum = id_of(config) != "blosc" && config != R"({"id":"zstd"})";
    const std::string good = encoded(*codec, raw);
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string stored = good;
      stored[bit / 8] = static_cast<char>(stored[bit / 8] ^ (1 << (bit % 8)));
      const auto back = decoded(*codec, stored, raw.size());
      EXPECT_TRUE(!back || *back == raw || !has_checksum) << config << " bit " << bit;
    }
  }
}

TEST(Codec, SurvivesRandomDamage) {
  std::mt19937 random(11);
  std::vector<std::string> configs = blosc_configs();
  for (const std::string& config : plain_configs()) configs.push_back(config);
  const std::string raw = sample(5000);
  for (const std::string& config : configs) {
    const auto codec = codec_of(config);
    const std::string good = encoded(*codec, raw);
    for (int i = 0; i < 150; ++i) {
      std::string stored = good;
      for (auto n = 1 + random() % 4; n-- > 0;) {
        // The header and the first offsets are where the lies are.
        const std::size_t reach =
            random() % 2 == 0 ? std::min<std::size_t>(32, good.size()) : good.size();
        stored[random() % reach] = static_cast<char>(random());
      }
      static_cast<void>(outcome(*codec, stored, raw.size()));
    }
  }
}

}  // namespace
}  // namespace cairn::codec
