// SPDX-License-Identifier: Apache-2.0
// libdeflate does the work: whole chunks in one call, two to three times as fast as zlib. It has
// one answer for all damage, so zlib looks again at a stream that was refused, to say what is wrong
// with it.
#include "cairn/codec/gzip.h"

#include <algorithm>
#include <array>

#include <libdeflate.h>
#include <zlib.h>

#include "cairn/codec/damage.h"
#include "cairn/codec/parameters.h"

namespace cairn::codec {
namespace {

/// What differs between the two wrappings.
struct Wrapping {
  const char* name;
  DamageReasons reasons;
  decltype(&libdeflate_zlib_compress_bound) bound;
  decltype(&libdeflate_zlib_compress) compress;
  decltype(&libdeflate_zlib_decompress_ex) decompress;
  int zlib_window_bits;
};

constexpr Wrapping kZlib = {"zlib",
                            {"zlib/truncated", "zlib/trailing-bytes", "zlib/too-short",
                             "zlib/too-long", "zlib/invalid", "zlib/checksum"},
                            libdeflate_zlib_compress_bound,
                            libdeflate_zlib_compress,
                            libdeflate_zlib_decompress_ex,
                            MAX_WBITS};
constexpr Wrapping kGzip = {"gzip",
                            {"gzip/truncated", "gzip/trailing-bytes", "gzip/too-short",
                             "gzip/too-long", "gzip/invalid", "gzip/checksum"},
                            libdeflate_gzip_compress_bound,
                            libdeflate_gzip_compress,
                            libdeflate_gzip_decompress_ex,
                            MAX_WBITS + 16};

struct Free {
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
  void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
};

class Deflate final : public Codec {
 public:
  Deflate(const Wrapping& wrapping, int level) : wrapping_(wrapping), level_(level) {}

  Result<Buffer> encode(ByteSpan raw) const override;
  Result<void> decode(ByteSpan stored, MutableByteSpan out) const override;

 private:
  Error find_damage(ByteSpan stored, std::size_t wanted) const;

  const Wrapping& wrapping_;
  int level_;
};

Result<Buffer> Deflate::encode(ByteSpan raw) const {
  const std::unique_ptr<libdeflate_compressor, Free> compressor(
      libdeflate_alloc_compressor(level_));
  if (!compressor) return out_of_memory(wrapping_.name);
  CAIRN_TRY_ASSIGN(Buffer stream, Buffer::allocate(wrapping_.bound(compressor.get(), raw.size())));
  MutableByteSpan space = stream.mutable_bytes();
  const std::size_t size =
      wrapping_.compress(compressor.get(), raw.data(), raw.size(), space.data(), space.size());
  if (size == 0) return Error(Code::kInternal, "gzip/encode", "libdeflate refused its own bound");
  return stream.slice(0, size);
}

Result<void> Deflate::decode(ByteSpan stored, MutableByteSpan out) const {
  const std::unique_ptr<libdeflate_decompressor, Free> decompressor(
      libdeflate_alloc_decompressor());
  if (!decompressor) return out_of_memory(wrapping_.name);
  std::size_t consumed = 0;
  std::size_t produced = 0;
  const libdeflate_result result =
      wrapping_.decompress(decompressor.get(), stored.data(), stored.size(), out.data(), out.size(),
                           &consumed, &produced);
  const auto refuse = [&](Damage damage) {
    return damaged(wrapping_.reasons, damage, {stored.size(), out.size()});
  };
  if (result != LIBDEFLATE_SUCCESS) return find_damage(stored, out.size());
  if (produced < out.size()) return refuse(Damage::kTooShort);
  if (consumed < stored.size()) return refuse(Damage::kTrailingBytes);
  return {};
}

/// Inflates with zlib, and throws away what comes out, to learn why `stored` was refused.
Error Deflate::find_damage(ByteSpan stored, std::size_t wanted) const {
  // zlib counts in 32 bits, so the input goes in by pieces.
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const ChunkSizes sizes{stored.size(), wanted};
  z_stream stream{};
  if (inflateInit2(&stream, wrapping_.zlib_window_bits) != Z_OK) {
    return out_of_memory(wrapping_.name);
  }
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, inflateEnd);
  std::array<Bytef, 16384> discarded{};
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      const ByteSpan piece = stored.first(std::min(kPiece, stored.size()));
      stored = stored.subspan(piece.size());
      // zlib does not write through next_in; it lacks the const for old callers.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
    }
    stream.next_out = discarded.data();
    stream.avail_out = static_cast<uInt>(discarded.size());
    status = inflate(&stream, Z_NO_FLUSH);
    if (stream.total_out > wanted) return damaged(wrapping_.reasons, Damage::kTooLong, sizes);
  }
  if (status == Z_MEM_ERROR) return out_of_memory(wrapping_.name);
  if (status == Z_BUF_ERROR) return damaged(wrapping_.reasons, Damage::kTruncated, sizes);
  const std::string_view said = stream.msg == nullptr ? "" : stream.msg;
  const bool checksum = said == "incorrect data check" || said == "incorrect length check";
  return damaged(wrapping_.reasons, checksum ? Damage::kChecksum : Damage::kInvalid, sizes, said);
}

Result<std::unique_ptr<Codec>> make_deflate(const Json& config, const Wrapping& wrapping) {
  CAIRN_TRY(check_members(config, {"level"}));
  CAIRN_TRY_ASSIGN(const int level, integer_parameter(config, "level", {0, 9}, 1));
  return std::make_unique<Deflate>(wrapping, level);
}

}  // namespace

Result<std::unique_ptr<Codec>> make_gzip(const Json& config, std::size_t /*item_size*/) {
  return make_deflate(config, kGzip);
}

Result<std::unique_ptr<Codec>> make_zlib(const Json& config, std::size_t /*item_size*/) {
  return make_deflate(config, kZlib);
}

}  // namespace cairn::codec
