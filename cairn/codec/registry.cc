// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/registry.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/codec/blosc.h"
#include "cairn/codec/bz2.h"
#include "cairn/codec/gzip.h"
#include "cairn/codec/zstd.h"

namespace cairn::codec {
namespace {

struct Row {
  std::string_view name;
  Result<std::unique_ptr<Codec>> (*make)(const Json& config, std::size_t item_size);
};

// Sorted by name.
constexpr std::array kRows = {
    Row{"blosc", make_blosc}, Row{"bz2", make_bz2},   Row{"gzip", make_gzip},
    Row{"zlib", make_zlib},   Row{"zstd", make_zstd},
};

}  // namespace

Result<std::unique_ptr<Codec>> make_codec(const Json& config, std::size_t item_size) {
  if (config.object() == nullptr) {
    return Error(
        Code::kInvalidArgument, "codec/not-an-object",
        fmt::format("a compressor is an object such as {{\"id\":\"zstd\",\"level\":1}}, not {}",
                    config.kind_name()));
  }
  const Json* id = config.find("id");
  if (id == nullptr || id->text() == nullptr) {
    return Error(Code::kInvalidArgument, "codec/no-id",
                 "a compressor needs a member 'id', the codec's name as text");
  }
  const auto row = std::ranges::find(kRows, *id->text(), &Row::name);
  if (row == kRows.end()) {
    return Error(Code::kInvalidArgument, "codec/unknown",
                 fmt::format("there is no codec '{:.40}'; there are: {}", *id->text(),
                             fmt::join(codec_names(), ", ")));
  }
  return row->make(config, item_size);
}

std::vector<std::string_view> codec_names() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kRows));
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

}  // namespace cairn::codec
