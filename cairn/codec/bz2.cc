// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/bz2.h"

#include <algorithm>
#include <array>

#include <bzlib.h>

#include "cairn/codec/damage.h"
#include "cairn/codec/parameters.h"

namespace cairn::codec {
namespace {

// bzip2 does not tell a wrong checksum from other damage.
constexpr DamageReasons kBz2Reasons = {"bz2/truncated", "bz2/trailing-bytes", "bz2/too-short",
                                       "bz2/too-long",  "bz2/invalid",        "bz2/invalid"};

// The library counts in 32 bits, so chunks go through it in pieces.
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Bytes that were not yet given to the library, in or out.
template <typename Byte>
struct Rest {
  std::span<Byte> bytes;

  /// Hands the next piece over, if the last one is used up.
  void refill(char*& next, unsigned& available) {
    if (available != 0 || bytes.empty()) return;
    const std::size_t size = std::min(kPiece, bytes.size());
    next = reinterpret_cast<char*>(const_cast<std::byte*>(bytes.data()));
    available = static_cast<unsigned>(size);
    bytes = bytes.subspan(size);
  }
};

class Bz2 final : public Codec {
 public:
  explicit Bz2(int level) : level_(level) {}

  Result<Buffer> encode(ByteSpan raw) const override;
  Result<void> decode(ByteSpan stored, MutableByteSpan out) const override;

 private:
  int level_;
};

Result<Buffer> Bz2::encode(ByteSpan raw) const {
  // The library's promise on the growth of what does not compress.
  CAIRN_TRY_ASSIGN(Buffer space, Buffer::allocate(raw.size() + raw.size() / 100 + 600));
  bz_stream stream{};
  if (BZ2_bzCompressInit(&stream, level_, 0, 0) != BZ_OK) return out_of_memory("bz2");
  const std::unique_ptr<bz_stream, decltype(&BZ2_bzCompressEnd)> end(&stream, BZ2_bzCompressEnd);
  Rest<const std::byte> in{raw};
  Rest<std::byte> out{space.mutable_bytes()};
  int status = BZ_RUN_OK;
  while (status == BZ_RUN_OK || status == BZ_FINISH_OK) {
    in.refill(stream.next_in, stream.avail_in);
    out.refill(stream.next_out, stream.avail_out);
    status = BZ2_bzCompress(&stream, in.bytes.empty() ? BZ_FINISH : BZ_RUN);
  }
  if (status != BZ_STREAM_END) return Error(Code::kInternal, "bz2/encode", "bzip2 did not finish");
  return space.slice(0, space.size() - out.bytes.size() - stream.avail_out);
}

Result<void> Bz2::decode(ByteSpan stored, MutableByteSpan chunk) const {
  const auto refuse = [&](Damage damage) {
    return damaged(kBz2Reasons, damage, {stored.size(), chunk.size()});
  };
  bz_stream stream{};
  if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) return out_of_memory("bz2");
  const std::unique_ptr<bz_stream, decltype(&BZ2_bzDecompressEnd)> end(&stream,
                                                                       BZ2_bzDecompressEnd);
  Rest<const std::byte> in{stored};
  Rest<std::byte> out{chunk};
  // The end of a stream is seen only while there is room for output: this byte is that room.
  std::byte beyond{};
  bool full = false;
  int status = BZ_OK;
  while (status == BZ_OK) {
    in.refill(stream.next_in, stream.avail_in);
    out.refill(stream.next_out, stream.avail_out);
    if (stream.avail_out == 0) {
      if (full) return refuse(Damage::kTooLong);
      full = true;
      Rest<std::byte>{{&beyond, 1}}.refill(stream.next_out, stream.avail_out);
    }
    status = BZ2_bzDecompress(&stream);
    const bool starved = stream.avail_in == 0 && in.bytes.empty() && stream.avail_out != 0;
    if (status == BZ_OK && starved) return refuse(Damage::kTruncated);
  }
  if (status == BZ_MEM_ERROR) return out_of_memory("bz2");
  if (status != BZ_STREAM_END) return refuse(Damage::kInvalid);
  if (full && stream.avail_out == 0) return refuse(Damage::kTooLong);
  if (!full && (stream.avail_out != 0 || !out.bytes.empty())) return refuse(Damage::kTooShort);
  if (stream.avail_in != 0 || !in.bytes.empty()) return refuse(Damage::kTrailingBytes);
  return {};
}

}  // namespace

Result<std::unique_ptr<Codec>> make_bz2(const Json& config, std::size_t /*item_size*/) {
  CAIRN_TRY(check_members(config, {"level"}));
  CAIRN_TRY_ASSIGN(const int level, integer_parameter(config, "level", {1, 9}, 1));
  return std::make_unique<Bz2>(level);
}

}  // namespace cairn::codec
