// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/blosc.h"

#include <climits>
#include <cstring>

#include <blosc.h>
#include <fmt/format.h>

#include "cairn/codec/damage.h"
#include "cairn/codec/parameters.h"

namespace cairn::codec {
namespace {

// There is no checksum in the format.
constexpr DamageReasons kBloscReasons = {"blosc/truncated", "blosc/trailing-bytes",
                                         "blosc/too-short", "blosc/too-long",
                                         "blosc/invalid",   "blosc/invalid"};

constexpr int kAutoShuffle = -1;

struct Parameters {
  std::string inner;
  int level = 0;
  int shuffle = 0;
  int block_size = 0;
  std::size_t item_size = 1;
};

class Blosc final : public Codec {
 public:
  explicit Blosc(Parameters parameters) : parameters_(std::move(parameters)) {}

  Result<Buffer> encode(ByteSpan raw) const override;
  Result<void> decode(ByteSpan stored, MutableByteSpan out) const override;

 private:
  Parameters parameters_;
};

Result<Buffer> Blosc::encode(ByteSpan raw) const {
  if (raw.size() > BLOSC_MAX_BUFFERSIZE) {
    return Error(
        Code::kInvalidArgument, "blosc/too-large",
        fmt::format("blosc holds at most {} bytes and the chunk has {}; use smaller chunks, "
                    "or zstd",
                    BLOSC_MAX_BUFFERSIZE, raw.size()));
  }
  CAIRN_TRY_ASSIGN(Buffer space, Buffer::allocate(raw.size() + BLOSC_MAX_OVERHEAD));
  MutableByteSpan out = space.mutable_bytes();
  const Parameters& p = parameters_;
  const int size =
      blosc_compress_ctx(p.level, p.shuffle, p.item_size, raw.size(), raw.data(), out.data(),
                         out.size(), p.inner.c_str(), static_cast<std::size_t>(p.block_size), 1);
  if (size <= 0) {
    return Error(Code::kInternal, "blosc/encode",
                 fmt::format("blosc with {} gave up with status {}", p.inner, size));
  }
  return space.slice(0, static_cast<std::size_t>(size));
}

/// The 16 bytes in front: the library believes most of them, so they are checked before it sees
/// them.
struct Header {
  std::uint8_t version;
  std::uint8_t inner_version;
  std::uint8_t flags;
  std::uint8_t item_size;
  std::uint32_t content;
  std::uint32_t block;
  std::uint32_t stored;

  int inner_format() const { return flags >> 5; }
};
static_assert(sizeof(Header) == BLOSC_MIN_HEADER_LENGTH);

Result<void> check_header(ByteSpan stored, std::size_t wanted) {
  const auto refuse = [&](Damage damage, std::string_view detail = {}) {
    return damaged(kBloscReasons, damage, {stored.size(), wanted}, detail);
  };
  if (stored.size() < sizeof(Header)) return refuse(Damage::kTruncated);
  Header header{};
  std::memcpy(&header, stored.data(), sizeof(header));
  if (header.version != BLOSC_VERSION_FORMAT) return refuse(Damage::kInvalid, "unknown version");
  if (header.stored > stored.size()) return refuse(Damage::kTruncated);
  if (header.stored < stored.size()) return refuse(Damage::kTrailingBytes);
  if (header.content < wanted) return refuse(Damage::kTooShort);
  if (header.content > wanted) return refuse(Damage::kTooLong);
  if (header.inner_format() > BLOSC_ZSTD_FORMAT) return refuse(Damage::kInvalid, "unknown codec");
  if (header.item_size == 0) return refuse(Damage::kInvalid, "items of no size");
  // The library allocates three blocks.
  if (wanted != 0 && (header.block == 0 || header.block > wanted)) {
    return refuse(Damage::kInvalid, "impossible block size");
  }
  return {};
}

Result<void> Blosc::decode(ByteSpan stored, MutableByteSpan out) const {
  CAIRN_TRY(check_header(stored, out.size()));
  const int size = blosc_decompress_ctx(stored.data(), out.data(), out.size(), 1);
  if (size >= 0 && static_cast<std::size_t>(size) == out.size()) return {};
  return damaged(kBloscReasons, Damage::kInvalid, {stored.size(), out.size()});
}

}  // namespace

Result<std::unique_ptr<Codec>> make_blosc(const Json& config, std::size_t item_size) {
  CAIRN_TRY(check_members(config, {"cname", "clevel", "shuffle", "blocksize"}));
  Parameters p;
  p.item_size = item_size;
  CAIRN_TRY_ASSIGN(
      p.inner,
      choice_parameter(config, "cname", {"lz4", "lz4hc", "blosclz", "snappy", "zlib", "zstd"}));
  CAIRN_TRY_ASSIGN(p.level, integer_parameter(config, "clevel", {0, 9}, 5));
  CAIRN_TRY_ASSIGN(p.shuffle, integer_parameter(config, "shuffle", {kAutoShuffle, BLOSC_BITSHUFFLE},
                                                kAutoShuffle));
  CAIRN_TRY_ASSIGN(p.block_size, integer_parameter(config, "blocksize", {0, INT_MAX}, 0));
  if (p.shuffle == kAutoShuffle) p.shuffle = item_size == 1 ? BLOSC_BITSHUFFLE : BLOSC_SHUFFLE;
  return std::make_unique<Blosc>(std::move(p));
}

}  // namespace cairn::codec
