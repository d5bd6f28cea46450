// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include "cairn/codec/damage.h"
#include "cairn/codec/parameters.h"

namespace cairn::codec {
namespace {

constexpr DamageReasons kZstdReasons = {"zstd/truncated", "zstd/trailing-bytes", "zstd/too-short",
                                        "zstd/too-long",  "zstd/invalid",        "zstd/checksum"};

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Contexts are made for each chunk: a kept one would hold its tables (hundreds of MiB at level 22)
// for as long as its array is open.
class Zstd final : public Codec {
 public:
  Zstd(int level, bool checksum) : level_(level), checksum_(checksum) {}

  Result<Buffer> encode(ByteSpan raw) const override;
  Result<void> decode(ByteSpan stored, MutableByteSpan out) const override;

 private:
  int level_;
  bool checksum_;
};

Result<Buffer> Zstd::encode(ByteSpan raw) const {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (!context) return out_of_memory("zstd");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level_);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, checksum_ ? 1 : 0);
  CAIRN_TRY_ASSIGN(Buffer frame, Buffer::allocate(ZSTD_compressBound(raw.size())));
  MutableByteSpan space = frame.mutable_bytes();
  const std::size_t size =
      ZSTD_compress2(context.get(), space.data(), space.size(), raw.data(), raw.size());
  if (ZSTD_isError(size) == 0) return frame.slice(0, size);
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) return out_of_memory("zstd");
  return Error(Code::kInternal, "zstd/encode", ZSTD_getErrorName(size));
}

/// `stored` is exactly one Zstandard frame, and does not say that it holds another size than
/// `wanted`.
Result<void> check_frame(ByteSpan stored, std::size_t wanted) {
  const ChunkSizes sizes{stored.size(), wanted};
  const auto refuse = [&](Damage damage, std::string_view detail = {}) {
    return damaged(kZstdReasons, damage, sizes, detail);
  };
  // The library would skip frames that are made to be skipped, and read formats older than 1.0.
  constexpr std::string_view kMagic = "\x28\xb5\x2f\xfd";
  const std::string_view begin = as_text(stored).substr(0, kMagic.size());
  if (!kMagic.starts_with(begin)) return refuse(Damage::kInvalid, "no Zstandard frame");

  const std::size_t frame = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame) != 0) {
    const bool cut = ZSTD_getErrorCode(frame) == ZSTD_error_srcSize_wrong;
    return refuse(cut ? Damage::kTruncated : Damage::kInvalid, ZSTD_getErrorName(frame));
  }
  if (frame < stored.size()) return refuse(Damage::kTrailingBytes);

  const unsigned long long content = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (content == ZSTD_CONTENTSIZE_UNKNOWN || content == wanted) return {};
  return refuse(content < wanted ? Damage::kTooShort : Damage::kTooLong);
}

Result<void> Zstd::decode(ByteSpan stored, MutableByteSpan out) const {
  CAIRN_TRY(check_frame(stored, out.size()));
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (!context) return out_of_memory("zstd");
  const std::size_t size =
      ZSTD_decompressDCtx(context.get(), out.data(), out.size(), stored.data(), stored.size());
  if (size == out.size()) return {};
  const ChunkSizes sizes{stored.size(), out.size()};
  if (ZSTD_isError(size) == 0) return damaged(kZstdReasons, Damage::kTooShort, sizes);
  switch (ZSTD_getErrorCode(size)) {
    case ZSTD_error_memory_allocation:
      return out_of_memory("zstd");
    case ZSTD_error_dstSize_tooSmall:
      return damaged(kZstdReasons, Damage::kTooLong, sizes);
    case ZSTD_error_checksum_wrong:
      return damaged(kZstdReasons, Damage::kChecksum, sizes);
    default:
      return damaged(kZstdReasons, Damage::kInvalid, sizes, ZSTD_getErrorName(size));
  }
}

}  // namespace

Result<std::unique_ptr<Codec>> make_zstd(const Json& config, std::size_t /*item_size*/) {
  CAIRN_TRY(check_members(config, {"level", "checksum"}));
  CAIRN_TRY_ASSIGN(const int level, integer_parameter(config, "level", {-131072, 22}, 1));
  CAIRN_TRY_ASSIGN(const bool checksum, boolean_parameter(config, "checksum", false));
  return std::make_unique<Zstd>(level, checksum);
}

}  // namespace cairn::codec
