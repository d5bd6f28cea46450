// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/zarr2/metadata.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/zarr2/compressor.h"
#include "cairn/format/zarr2/dtype.h"
#include "cairn/format/zarr2/fill_value.h"
#include "cairn/format/zarr2/shown.h"

namespace cairn::format::zarr2 {
namespace {

// Errors of the JSON parser, of sizes and of the codecs, as errors of a `.zarray`.
struct Renaming {
  std::string_view from;
  Code code;
  const char* to;
};
constexpr std::array kRenamings{
    Renaming{"json/syntax", Code::kCorrupt, "zarr2/not-json"},
    Renaming{"json/utf8", Code::kCorrupt, "zarr2/not-utf8"},
    Renaming{"json/too-large", Code::kCorrupt, "zarr2/too-large"},
    Renaming{"json/too-deep", Code::kCorrupt, "zarr2/too-deep"},
    Renaming{"array/shape-overflow", Code::kCorrupt, "zarr2/shape-overflow"},
    Renaming{"array/chunk-overflow", Code::kCorrupt, "zarr2/chunk-overflow"},
    Renaming{"codec/not-an-object", Code::kCorrupt, "zarr2/compressor-type"},
    Renaming{"codec/no-id", Code::kCorrupt, "zarr2/compressor-no-id"},
    Renaming{"codec/unknown", Code::kUnimplemented, "zarr2/compressor-unknown"},
    Renaming{"codec/bad-parameter", Code::kCorrupt, "zarr2/compressor-parameter"},
};

Error renamed(const Error& error) {
  const auto* row = std::ranges::find(kRenamings, error.reason(), &Renaming::from);
  if (row == kRenamings.end()) return error;
  return Error(row->code, row->to, error.message(), error.origin());
}

Error corrupt(const char* reason, std::string message) {
  return Error(Code::kCorrupt, reason, std::move(message));
}

Result<const Json*> member(const Json& root, std::string_view name, const char* reason) {
  const Json* value = root.find(name);
  if (value != nullptr) return value;
  return corrupt(reason, fmt::format("there is no member \"{}\", which every .zarray has", name));
}

Result<void> check_format(const Json& root) {
  CAIRN_TRY_ASSIGN(const Json* value, member(root, "zarr_format", "zarr2/missing-zarr_format"));
  if (value->integral() == 2) return {};
  return Error(value->integral() ? Code::kUnimplemented : Code::kCorrupt, "zarr2/format-version",
               fmt::format("zarr_format is {}; a .zarray of zarr v2 says 2", shown(*value)));
}

// The same sentences for both lists of sizes, with a reason for each.
struct SizeRules {
  std::string_view name;
  Index smallest;
  const char* missing;
  const char* type;
  const char* negative;
  const char* zero;  // null: zero is fine
  const char* overflow;
};
constexpr SizeRules kShapeRules{"shape",
                                0,
                                "zarr2/missing-shape",
                                "zarr2/shape-type",
                                "zarr2/shape-negative",
                                nullptr,
                                "zarr2/shape-overflow"};
constexpr SizeRules kChunkRules{"chunks",
                                1,
                                "zarr2/missing-chunks",
                                "zarr2/chunk-type",
                                "zarr2/chunk-negative",
                                "zarr2/chunk-zero",
                                "zarr2/chunk-overflow"};

Error bad_sizes(const SizeRules& rules, const char* reason, const Json& value,
                std::string_view problem) {
  return corrupt(reason, fmt::format("{} is {}: {}", rules.name, shown(value), problem));
}

Result<Index> parse_size(const SizeRules& rules, const Json& list, const Json& item) {
  const std::optional<std::int64_t> size = item.integral();
  if (size && *size >= rules.smallest) return *size;
  if (size == 0) return bad_sizes(rules, rules.zero, list, "a chunk has at least one cell");
  if (size) return bad_sizes(rules, rules.negative, list, "a size cannot be negative");
  const std::optional<double> number = item.number();
  if (number && std::abs(*number) >= 0x1p63) {
    return bad_sizes(rules, *number < 0 ? rules.negative : rules.overflow, list,
                     "a size does not fit 64 bits");
  }
  return bad_sizes(rules, rules.type, list, "sizes must be whole numbers");
}

Result<Shape> parse_sizes(const Json& root, const SizeRules& rules) {
  CAIRN_TRY_ASSIGN(const Json* value, member(root, rules.name, rules.missing));
  const Json::Array* items = value->array();
  if (items == nullptr) return bad_sizes(rules, rules.type, *value, "expected a list of sizes");
  if (items->size() > kMaxRank) {
    return Error(Code::kUnimplemented, "zarr2/rank",
                 fmt::format("{} has {} dimensions; at most {} are supported", rules.name,
                             items->size(), kMaxRank));
  }
  Shape sizes;
  for (const Json& item : *items) {
    CAIRN_TRY_ASSIGN(const Index size, parse_size(rules, *value, item));
    sizes.push_back(size);
  }
  return sizes;
}

Result<void> check_sizes(const StoredArray& array) {
  if (const auto fits = array.check_sizes(); !fits) return renamed(fits.error());
  const std::uint64_t chunk = array.chunk_bytes();
  if (!array.codec.is_raw() && chunk > kMaxCompressedChunkBytes) {
    return Error(Code::kUnimplemented, "zarr2/chunk-too-large",
                 fmt::format("a chunk of shape {} is {} large behind a compressor; at most {} are "
                             "decoded at once",
                             to_string(array.chunk_shape), format_bytes(chunk),
                             format_bytes(kMaxCompressedChunkBytes)));
  }
  if (array.chunk_count() > kMaxChunks) {
    return Error(Code::kUnimplemented, "zarr2/too-many-chunks",
                 fmt::format("shape {} in chunks of {} makes {} chunks; at most {} are supported",
                             to_string(array.shape), to_string(array.chunk_shape),
                             array.chunk_count(), kMaxChunks));
  }
  return {};
}

Result<void> parse_grid(const Json& root, StoredArray& array) {
  CAIRN_TRY_ASSIGN(array.shape, parse_sizes(root, kShapeRules));
  CAIRN_TRY_ASSIGN(array.chunk_shape, parse_sizes(root, kChunkRules));
  if (array.shape.size() == array.chunk_shape.size()) return {};
  return corrupt("zarr2/chunk-rank",
                 fmt::format("chunks has {} dimensions and shape has {}; they must agree",
                             array.chunk_shape.size(), array.shape.size()));
}

Result<void> parse_type(const Json& root, StoredArray& array) {
  CAIRN_TRY_ASSIGN(const Json* dtype, member(root, "dtype", "zarr2/missing-dtype"));
  CAIRN_TRY_ASSIGN(const StoredType type, parse_stored_type(*dtype));
  array.dtype = type.dtype;
  array.big_endian = type.big_endian;
  CAIRN_TRY_ASSIGN(const Json* fill, member(root, "fill_value", "zarr2/missing-fill_value"));
  if (fill->is_null()) return {};
  CAIRN_TRY_ASSIGN(array.fill, parse_fill_value(array.dtype, *fill));
  return {};
}

Result<void> parse_codec(const Json& root, StoredArray& array) {
  const Json* filters = root.find("filters");
  if (filters != nullptr && !filters->is_null()) {
    if (filters->array() == nullptr) {
      return corrupt("zarr2/filters-type",
                     fmt::format("filters must be null or a list, but is {}", shown(*filters)));
    }
    if (!filters->array()->empty()) {
      return Error(Code::kUnimplemented, "zarr2/filters",
                   fmt::format("filters {} are not supported; write the array again without them",
                               shown(*filters)));
    }
  }
  if (const Json* compressor = root.find("compressor")) {
    array.codec = CodecSpec(plain_levels(*compressor));
  }
  return {};
}

Result<void> parse_order(const Json& root, StoredArray& array) {
  CAIRN_TRY_ASSIGN(const Json* order, member(root, "order", "zarr2/missing-order"));
  if (*order != "C" && *order != "F") {
    return corrupt("zarr2/order",
                   fmt::format("order must be \"C\" or \"F\", but is {}", shown(*order)));
  }
  array.fortran_order = *order == "F";
  const Json* separator = root.find("dimension_separator");
  if (separator == nullptr) return {};
  if (*separator != "." && *separator != "/") {
    return corrupt(
        "zarr2/separator",
        fmt::format("dimension_separator must be \".\" or \"/\", but is {}", shown(*separator)));
  }
  array.separator = separator->text()->front();
  return {};
}

Json sizes_json(const Shape& sizes) {
  Json::Array items;
  for (Index size : sizes) items.emplace_back(size);
  return items;
}

Json sorted(Json config) {
  if (Json::Object* members = config.object()) {
    std::ranges::sort(*members, {}, &std::pair<std::string, Json>::first);
  }
  return config;
}

}  // namespace

Result<StoredArray> parse_metadata(std::string_view text) {
  if (text.empty()) {
    return corrupt("zarr2/empty", "the file is empty: its writer did not finish");
  }
  Result<Json> root = parse_json(text, {.bytes = kMaxMetadataBytes});
  if (!root) return renamed(root.error());
  if (root->object() == nullptr) {
    return corrupt("zarr2/not-an-object",
                   fmt::format("the file must hold an object, but holds {}", shown(*root)));
  }
  StoredArray array;
  CAIRN_TRY(check_format(*root));
  CAIRN_TRY(parse_grid(*root, array));
  CAIRN_TRY(parse_type(*root, array));
  CAIRN_TRY(parse_codec(*root, array));
  CAIRN_TRY(parse_order(*root, array));
  CAIRN_TRY(check_sizes(array));
  if (auto codec = ChunkCodec::make(array); !codec) return renamed(codec.error());
  return array;
}

Result<std::string> dump_metadata(const StoredArray& array) {
  if (array.packed || array.one_object) {
    return Error(
        Code::kInvalidArgument, "zarr2/not-representable",
        "zarr v2 keeps one element or more a byte, and each chunk in an object of its own");
  }
  CAIRN_TRY_ASSIGN(std::string dtype,
                   dump_stored_type({.dtype = array.dtype, .big_endian = array.big_endian}));
  Json fill;
  if (!array.fill.empty()) {
    CAIRN_TRY_ASSIGN(fill, dump_fill_value(array.dtype, array.fill));
  }
  return dump_json(Json::Object{{"chunks", sizes_json(array.chunk_shape)},
                                {"compressor", sorted(array.codec.config())},
                                {"dimension_separator", std::string(1, array.separator)},
                                {"dtype", std::move(dtype)},
                                {"fill_value", std::move(fill)},
                                {"filters", nullptr},
                                {"order", array.fortran_order ? "F" : "C"},
                                {"shape", sizes_json(array.shape)},
                                {"zarr_format", 2}});
}

}  // namespace cairn::format::zarr2
