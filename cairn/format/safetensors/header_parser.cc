// SPDX-License-Identifier: Apache-2.0
// The checks follow the order of the format's library: length, text, JSON, each entry, then all
// ranges together.
#include "cairn/format/safetensors/header_parser.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/json.h"
#include "cairn/format/safetensors/quoted.h"

namespace cairn::format::safetensors {
namespace {

// The deepest nesting that serde_json, the library's parser, reads.
constexpr int kMaxDepth = 127;

Error corrupt(const char* reason, std::string message) {
  return Error(Code::kCorrupt, reason, std::move(message));
}

struct Fields {
  const Json* dtype = nullptr;
  const Json* shape = nullptr;
  const Json* offsets = nullptr;
};

Result<Fields> find_members(const Json::Object& entry) {
  Fields fields;
  for (const auto& [name, value] : entry) {
    const Json** field = name == "dtype"          ? &fields.dtype
                         : name == "shape"        ? &fields.shape
                         : name == "data_offsets" ? &fields.offsets
                                                  : nullptr;
    if (field == nullptr) continue;
    if (*field != nullptr) {
      return corrupt("safetensors/duplicate-field", fmt::format("it has {} twice", name));
    }
    *field = &value;
  }
  if (fields.dtype == nullptr) return corrupt("safetensors/missing-dtype", "it has no dtype");
  if (fields.shape == nullptr) return corrupt("safetensors/missing-shape", "it has no shape");
  if (fields.offsets == nullptr) {
    return corrupt("safetensors/missing-offsets", "it has no data_offsets");
  }
  return fields;
}

// An object, or the three values of one in an array.
Result<Fields> find_fields(const Json& entry) {
  if (const Json::Object* object = entry.object()) return find_members(*object);
  const Json::Array* items = entry.array();
  if (items == nullptr || items->size() != 3) {
    return corrupt("safetensors/entry-type",
                   fmt::format("its entry is {}, not an object with dtype, shape and data_offsets",
                               entry.kind_name()));
  }
  return Fields{&(*items)[0], &(*items)[1], &(*items)[2]};
}

// "F32"; the library reads {"F32":null} as the same.
Result<DType> parse_dtype(const Json& value) {
  const std::string* name = value.text();
  if (const Json::Object* object = value.object();
      object != nullptr && object->size() == 1 && object->front().second.is_null()) {
    name = &object->front().first;
  }
  if (name == nullptr) {
    return corrupt("safetensors/dtype-type",
                   fmt::format("its dtype is {}, not text", value.kind_name()));
  }
  const std::optional<DType> dtype = parse_dtype_string(*name);
  if (!dtype) {
    return corrupt("safetensors/dtype-unknown",
                   fmt::format("its dtype {} is not one of safetensors", quoted(*name)));
  }
  return *dtype;
}

Result<Shape> parse_shape(const Json& value) {
  const Json::Array* items = value.array();
  if (items == nullptr) {
    return corrupt("safetensors/shape-type",
                   fmt::format("its shape is {}, not an array", value.kind_name()));
  }
  if (items->size() > kMaxRank) {
    return Error(
        Code::kUnimplemented, "safetensors/rank",
        fmt::format("it has {} dimensions; Cairn reads at most {}", items->size(), kMaxRank));
  }
  Shape shape;
  for (const Json& item : *items) {
    const auto size = item.unsigned_integer();
    if (!size) {
      return corrupt("safetensors/shape-type",
                     "its shape has something else than whole numbers from 0 on");
    }
    if (*size >> 63 != 0) {
      return corrupt("safetensors/shape-overflow",
                     fmt::format("a dimension of {} is more than can be counted", *size));
    }
    shape.push_back(static_cast<Shape::value_type>(*size));
  }
  return shape;
}

Result<void> parse_offsets(const Json& value, Tensor& tensor) {
  const Json::Array* items = value.array();
  if (items == nullptr || items->size() != 2 || !(*items)[0].unsigned_integer() ||
      !(*items)[1].unsigned_integer()) {
    return corrupt("safetensors/offset-type",
                   "its data_offsets are not two whole numbers from 0 on");
  }
  tensor.begin = *(*items)[0].unsigned_integer();
  tensor.end = *(*items)[1].unsigned_integer();
  if (tensor.end < tensor.begin) {
    return corrupt(
        "safetensors/offset-reversed",
        fmt::format("its range [{}, {}) ends before it begins", tensor.begin, tensor.end));
  }
  return {};
}

Result<void> check_size(const Tensor& tensor) {
  const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
  if (!bytes && bytes.error().reason() == "safetensors/misaligned") {
    return corrupt("safetensors/misaligned", bytes.error().message());
  }
  if (!bytes) return corrupt("safetensors/shape-overflow", bytes.error().message());
  if (tensor.end - tensor.begin != *bytes) {
    return corrupt("safetensors/size-mismatch",
                   fmt::format("its range [{}, {}) has {} bytes, {} of shape {} has {}",
                               tensor.begin, tensor.end, tensor.end - tensor.begin,
                               dtype_name(tensor.dtype), to_string(tensor.shape), *bytes));
  }
  return {};
}

Result<Tensor> parse_entry(const Json& entry) {
  CAIRN_TRY_ASSIGN(const Fields fields, find_fields(entry));
  Tensor tensor;
  CAIRN_TRY_ASSIGN(tensor.dtype, parse_dtype(*fields.dtype));
  CAIRN_TRY_ASSIGN(tensor.shape, parse_shape(*fields.shape));
  CAIRN_TRY(parse_offsets(*fields.offsets, tensor));
  CAIRN_TRY(check_size(tensor));
  return tensor;
}

Result<Metadata> parse_metadata(const Json& value) {
  if (value.is_null()) return Metadata();
  if (value.object() == nullptr) {
    return corrupt("safetensors/metadata-type",
                   fmt::format("__metadata__ is {}, not an object", value.kind_name()));
  }
  std::map<std::string_view, std::string_view> entries;
  for (const auto& [key, item] : *value.object()) {
    if (item.text() == nullptr) {
      return corrupt("safetensors/metadata-type",
                     fmt::format("__metadata__ has {} for {}, and only text is allowed",
                                 item.kind_name(), quoted(key)));
    }
    // A repeated key keeps its last value, as in the library.
    entries[key] = *item.text();
  }
  return Metadata(entries.begin(), entries.end());
}

// Sorts by offset and drops entries that say the same again; the same name with another entry is
// refused. Sorts to find them, because a hash table can be attacked.
Result<void> settle(std::vector<Tensor>& tensors) {
  std::ranges::sort(tensors, [](const Tensor& a, const Tensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  const auto repeated = std::ranges::unique(tensors);
  tensors.erase(repeated.begin(), repeated.end());

  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const Tensor& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  const auto twin = std::ranges::adjacent_find(names);
  if (twin == names.end()) return {};
  return corrupt("safetensors/duplicate-tensor",
                 fmt::format("tensor {} has two entries that differ", quoted(*twin)));
}

// Every byte of the data belongs to one tensor.
Result<void> check_coverage(const std::vector<Tensor>& tensors, std::uint64_t data_bytes) {
  std::uint64_t position = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.begin != position) {
      const bool gap = tensor.begin > position;
      return corrupt(
          gap ? "safetensors/offset-gap" : "safetensors/offset-overlap",
          fmt::format(
              "tensor {} begins at {}, and {} {}", quoted(tensor.name), tensor.begin,
              gap ? "no tensor covers the bytes from" : "another tensor covers the bytes up to",
              position));
    }
    position = tensor.end;
  }
  if (position > data_bytes) {
    return corrupt("safetensors/truncated",
                   fmt::format("the tensors need {} bytes and the file has {}: it was cut off",
                               position, data_bytes));
  }
  if (position < data_bytes) {
    return corrupt(
        "safetensors/trailing-bytes",
        fmt::format("{} bytes after the last tensor belong to none", data_bytes - position));
  }
  return {};
}

Result<Json> parse_text(std::string_view text) {
  // parse_json() reads a byte order mark and NULs at the end; the library does not.
  if (text.starts_with("\xEF\xBB\xBF") || text.find('\0') != std::string_view::npos) {
    return corrupt("safetensors/json",
                   "the header has a byte order mark or a NUL byte, which JSON does not allow");
  }
  auto parsed = parse_json(text, {.bytes = kMaxHeaderBytes,
                                  .depth = kMaxDepth,
                                  .values = kMaxHeaderValues,
                                  .repeated = Repeated::kKeep});
  if (parsed || parsed.error().code() != Code::kCorrupt) return parsed;
  const std::string_view reason = parsed.error().reason();
  return corrupt(reason == "json/utf8"              ? "safetensors/utf8"
                 : reason == "json/too-deep"        ? "safetensors/too-deep"
                 : reason == "json/too-many-values" ? "safetensors/header-too-large"
                                                    : "safetensors/json",
                 "the header is not JSON: " + parsed.error().message());
}

}  // namespace

Result<std::uint64_t> parse_header_length(ByteSpan first8, std::uint64_t file_size) {
  if (first8.size() < kLengthBytes || file_size < kLengthBytes) {
    return corrupt("safetensors/header-too-small",
                   fmt::format("a file of {} bytes has no room for a header", file_size));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(first8[i]) << (8 * i);
  }
  if (length > kMaxHeaderBytes) {
    return corrupt("safetensors/header-too-large",
                   fmt::format("a header of {} bytes is claimed, and {} is the most that is "
                               "allowed; is this a safetensors file?",
                               length, kMaxHeaderBytes));
  }
  if (length > file_size - kLengthBytes) {
    return corrupt(
        "safetensors/header-length",
        fmt::format("a header of {} bytes is claimed in a file of {}", length, file_size));
  }
  return length;
}

Result<Header> parse_header(std::string_view json, std::uint64_t file_size) {
  if (file_size < kLengthBytes || json.size() > file_size - kLengthBytes) {
    return corrupt("safetensors/header-length",
                   fmt::format("a header of {} bytes in a file of {}", json.size(), file_size));
  }
  CAIRN_TRY_ASSIGN(Json root, parse_text(json));
  if (root.object() == nullptr) {
    return corrupt("safetensors/header-type",
                   fmt::format("the header is {}, not an object", root.kind_name()));
  }
  Header header;
  header.data_start = kLengthBytes + json.size();
  header.data_bytes = file_size - header.data_start;
  header.tensors.reserve(root.object()->size());
  bool has_metadata = false;
  for (auto& [name, value] : *root.object()) {
    if (name != "__metadata__") {
      const auto place = [&text = name] { return "tensor " + quoted(text); };
      CAIRN_TRY_ASSIGN(Tensor tensor, parse_entry(value).in(place));
      tensor.name = std::move(name);
      header.tensors.push_back(std::move(tensor));
      continue;
    }
    if (std::exchange(has_metadata, true)) {
      return corrupt("safetensors/duplicate-metadata", "the header has __metadata__ twice");
    }
    CAIRN_TRY_ASSIGN(header.metadata, parse_metadata(value));
  }
  CAIRN_TRY(settle(header.tensors));
  CAIRN_TRY(check_coverage(header.tensors, header.data_bytes));
  return header;
}

}  // namespace cairn::format::safetensors
