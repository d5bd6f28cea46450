// SPDX-License-Identifier: Apache-2.0
// How a stored chunk can be wrong, and the error that says so. Shared by the codecs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>

#include "cairn/base/error.h"

namespace cairn::codec {

enum class Damage : std::uint8_t {
  kTruncated,      ///< the stream stops before its end
  kTrailingBytes,  ///< something follows the end of the stream
  kTooShort,       ///< a whole stream of fewer bytes than the chunk has
  kTooLong,        ///< a stream of more bytes
  kInvalid,        ///< anything else the library refuses
  kChecksum,       ///< the bytes decode, but differ from what was stored
};

/// A codec's reason tokens, in the order of Damage.
using DamageReasons = std::array<const char*, 6>;

struct ChunkSizes {
  std::size_t stored = 0;
  std::size_t wanted = 0;
};

/// `corrupt`. The codec's name is the first part of its reasons; `detail` is what its library said.
Error damaged(const DamageReasons& reasons, Damage damage, ChunkSizes sizes,
              std::string_view detail = {},
              std::source_location origin = std::source_location::current());

/// `resource_exhausted` (codec/out-of-memory): the library could not allocate its working memory.
Error out_of_memory(std::string_view codec,
                    std::source_location origin = std::source_location::current());

}  // namespace cairn::codec
