// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/header.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/base/checked.h"
#include "cairn/base/human.h"
#include "cairn/base/json.h"
#include "cairn/base/utf8.h"
#include "cairn/format/safetensors/quoted.h"

namespace cairn::format::safetensors {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";

Error invalid(const char* reason, std::string message) {
  return Error(Code::kInvalidArgument, reason, std::move(message));
}

Result<void> check_names(const std::vector<Tensor>& tensors) {
  std::unordered_set<std::string_view> seen;
  seen.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    if (tensor.name == kMetadataName) {
      return invalid("safetensors/reserved-name",
                     "a tensor cannot be called __metadata__ in safetensors; rename it");
    }
    if (!is_utf8(tensor.name)) {
      return invalid("safetensors/name-utf8",
                     fmt::format("the name of a tensor is not UTF-8: {}", quoted(tensor.name)));
    }
    if (!seen.insert(tensor.name).second) {
      return invalid("safetensors/duplicate-name",
                     fmt::format("two tensors are called {}", quoted(tensor.name)));
    }
  }
  return {};
}

Result<void> check_metadata(const Metadata& metadata) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value)) {
      return invalid("safetensors/name-utf8",
                     fmt::format("metadata {} is not UTF-8; encode it as text", quoted(key)));
    }
    if (!seen.insert(key).second) {
      return invalid("safetensors/duplicate-metadata-key",
                     fmt::format("metadata has {} twice", quoted(key)));
    }
  }
  return {};
}

// One after the other, no holes.
Result<void> assign_offsets(std::vector<Tensor>& tensors) {
  std::ranges::sort(tensors, [](const Tensor& a, const Tensor& b) {
    if (a.dtype != b.dtype) return dtype_place(a.dtype) > dtype_place(b.dtype);
    return a.name < b.name;
  });
  std::uint64_t position = 0;
  for (Tensor& tensor : tensors) {
    const auto place = [&] { return "tensor " + quoted(tensor.name); };
    CAIRN_TRY_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.shape).in(place));
    const auto end = checked_add(position, bytes);
    // Below 2^62, so that the header and every offset in the file fit 63 bits.
    if (!end || *end >> 62 != 0) {
      return invalid("safetensors/data-too-large",
                     fmt::format("{} tensors are too large for one file", tensors.size()));
    }
    tensor.begin = std::exchange(position, *end);
    tensor.end = *end;
  }
  return {};
}

std::string dump_metadata(const Metadata& metadata) {
  Json::Object members;
  members.reserve(metadata.size());
  for (const auto& [key, value] : metadata) members.emplace_back(key, Json(value));
  return dump_json(Json(std::move(members)));
}

Result<std::string> dump_header(const std::vector<Tensor>& tensors, const Metadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += fmt::format("\"{}\":{},", kMetadataName, dump_metadata(metadata));
  }
  for (const Tensor& tensor : tensors) {
    CAIRN_TRY_ASSIGN(const std::string_view dtype, dtype_string(tensor.dtype));
    json += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)",
                        dump_json(tensor.name), dtype, fmt::join(tensor.shape, ","), tensor.begin,
                        tensor.end);
  }
  if (json.back() == ',') json.pop_back();
  return json + '}';
}

/// As parse_json() will count them.
std::size_t count_values(const std::vector<Tensor>& tensors, const Metadata& metadata) {
  constexpr std::size_t kOfOneTensor = 10;
  std::size_t count = 3 + 2 * metadata.size() + kOfOneTensor * tensors.size();
  for (const Tensor& tensor : tensors) count += tensor.shape.size();
  return count;
}

}  // namespace

StoredArray Header::stored_array(const Tensor& tensor, std::string key) const {
  StoredArray array;
  array.dtype = tensor.dtype;
  array.shape = tensor.shape;
  array.chunk_shape = tensor.shape;
  std::ranges::replace(array.chunk_shape, 0, 1);
  array.packed = is_packed(tensor.dtype);
  array.key = std::move(key);
  array.one_object = true;
  array.offset = data_start + tensor.begin;
  return array;
}

Result<std::uint64_t> tensor_bytes(DType dtype, const Shape& shape) {
  CAIRN_TRY(dtype_string(dtype));
  // Zeros count as ones: chunks of an empty array have that shape, and must not overflow either.
  Shape chunk = shape;
  std::ranges::replace(chunk, 0, 1);
  CAIRN_TRY_ASSIGN(const std::uint64_t cells, element_count(chunk));
  const auto memory = checked_mul<std::uint64_t>(cells, item_size(dtype));
  if (!memory || *memory > kMaxArrayBytes) {
    return invalid("safetensors/shape-overflow",
                   fmt::format("{} of shape {} is larger than {}", dtype_name(dtype),
                               to_string(shape), format_bytes(kMaxArrayBytes)));
  }
  const std::uint64_t bits = cells * static_cast<std::uint64_t>(bit_width(dtype));
  if (std::ranges::count(shape, 0) > 0) return std::uint64_t{0};
  if (bits % 8 != 0) {
    return invalid("safetensors/misaligned",
                   fmt::format("{} of shape {} does not fill whole bytes; pad it, or cast it to a "
                               "type of whole bytes",
                               dtype_name(dtype), to_string(shape)));
  }
  return bits / 8;
}

Result<std::string> make_header(std::vector<Tensor>& tensors, const Metadata& metadata) {
  if (count_values(tensors, metadata) > kMaxHeaderValues) {
    return invalid("safetensors/header-too-large",
                   fmt::format("a header of {} tensors is too large to be read; save them in "
                               "several parts",
                               tensors.size()));
  }
  CAIRN_TRY(check_names(tensors));
  CAIRN_TRY(check_metadata(metadata));
  CAIRN_TRY(assign_offsets(tensors));
  CAIRN_TRY_ASSIGN(const std::string json, dump_header(tensors, metadata));

  const std::uint64_t data_start = round_up(kLengthBytes + json.size(), kDataAlignment);
  const std::uint64_t length = data_start - kLengthBytes;
  if (length > kMaxHeaderBytes) {
    return invalid("safetensors/header-too-large",
                   fmt::format("{} tensors need a header of {} bytes, and safetensors allows {}; "
                               "save them in several parts",
                               tensors.size(), length, kMaxHeaderBytes));
  }
  std::string text;
  text.reserve(data_start);
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(length >> shift & 0xFF);
  text += json;
  text.resize(data_start, ' ');
  return text;
}

}  // namespace cairn::format::safetensors
