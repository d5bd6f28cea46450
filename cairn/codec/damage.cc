// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/damage.h"

#include <fmt/format.h>

namespace cairn::codec {
namespace {

std::string_view describe(Damage damage) {
  switch (damage) {
    case Damage::kTruncated:
      return "the stream is cut short";
    case Damage::kTrailingBytes:
      return "more bytes follow the end of the stream";
    case Damage::kTooShort:
      return "the stream holds fewer bytes than that";
    case Damage::kTooLong:
      return "the stream holds more bytes than that";
    case Damage::kInvalid:
      return "this is not a valid stream";
    case Damage::kChecksum:
      return "the checksum does not match";
  }
  return "unknown damage";
}

}  // namespace

Error damaged(const DamageReasons& reasons, Damage damage, ChunkSizes sizes,
              std::string_view detail, std::source_location origin) {
  const char* reason = reasons[static_cast<std::size_t>(damage)];
  const std::string_view codec =
      std::string_view(reason).substr(0, std::string_view(reason).find('/'));
  return Error(Code::kCorrupt, reason,
               fmt::format("{} bytes stored with {} do not decode to a chunk of {} bytes: {}{}{}; "
                           "take the chunk from another copy of the checkpoint",
                           sizes.stored, codec, sizes.wanted, describe(damage),
                           detail.empty() ? "" : ": ", detail),
               origin);
}

Error out_of_memory(std::string_view codec, std::source_location origin) {
  return Error(Code::kResourceExhausted, "codec/out-of-memory",
               fmt::format("no working memory for {}; free some and try again", codec), origin);
}

}  // namespace cairn::codec
