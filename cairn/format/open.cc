// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/open.h"

#include <array>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/format/zarr2/metadata.h"

namespace cairn::format {
namespace {

struct Format {
  std::string_view metadata_name;
  std::size_t max_metadata_bytes;
  Result<StoredArray> (*parse)(std::string_view text);
};
constexpr std::array kFormats{
    Format{zarr2::kMetadataName, zarr2::kMaxMetadataBytes, zarr2::parse_metadata},
};

std::string key_in(std::string_view directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

std::string looked_for() {
  std::string names;
  for (const Format& format : kFormats) {
    if (!names.empty()) names += ", ";
    names += format.metadata_name;
  }
  return names;
}

// A metadata file above its limit is no shortage of memory, which storage cannot know.
Error metadata_error(Error error, std::size_t limit) {
  if (error.reason() != "storage/too-large") return error;
  return Error(Code::kCorrupt, "format/metadata-too-large",
               fmt::format("the metadata of an array is longer than the limit of {}",
                           format_bytes(limit)))
      .in(error.where());
}

}  // namespace

Result<StoredArray> open_array(storage::Store& store, std::string_view directory) {
  for (const Format& format : kFormats) {
    const std::string key = key_in(directory, format.metadata_name);
    Result<Buffer> text = storage::read_all(store, key, format.max_metadata_bytes);
    if (!text && text.error().code() == Code::kNotFound) continue;
    if (!text) return metadata_error(std::move(text).error(), format.max_metadata_bytes);
    Result<StoredArray> array = format.parse(as_text(text->bytes()));
    if (array) array->key = std::string(directory);
    return std::move(array).in([&] { return store.describe(key); });
  }
  return Error(Code::kNotFound, "format/no-array",
               fmt::format("there is no array in {}; looked for {}", store.describe(directory),
                           looked_for()));
}

Result<bool> is_array(storage::Store& store, std::string_view directory) {
  for (const Format& format : kFormats) {
    const auto info = store.stat(key_in(directory, format.metadata_name));
    if (info) return true;
    if (info.error().code() != Code::kNotFound) return info.error();
  }
  return false;
}

}  // namespace cairn::format
