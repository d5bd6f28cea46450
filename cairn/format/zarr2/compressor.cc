// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/zarr2/compressor.h"

#include <algorithm>

namespace cairn::format::zarr2 {
namespace {

constexpr std::int64_t kZlibDefault = 6;
constexpr std::int64_t kZstdLowest = -131072;
constexpr std::int64_t kZstdHighest = 22;

}  // namespace

Json plain_levels(Json compressor) {
  const Json* id = compressor.find("id");
  const Json* level = compressor.find("level");
  if (id == nullptr || level == nullptr || !level->integral()) return compressor;
  const std::int64_t written = *level->integral();
  if (*id == "zstd") {
    compressor.set("level", std::clamp(written, kZstdLowest, kZstdHighest));
  } else if (written == -1 && (*id == "zlib" || *id == "gzip")) {
    compressor.set("level", kZlibDefault);
  }
  return compressor;
}

}  // namespace cairn::format::zarr2
