// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/manifest_columns.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/base64.h"
#include "cairn/base/uri.h"
#include "cairn/format/safetensors/header.h"
#include "cairn/manifest/names.h"

namespace cairn {

static_assert(std::endian::native == std::endian::little,
              "columns are copied as they lie in memory");

namespace {

Error columns_error(std::string_view name) {
  return Error(
      Code::kCorrupt, "manifest/columns",
      fmt::format("the manifest's column '{}' does not have one entry for each array", name));
}

template <typename T>
std::string pack(const std::vector<T>& values) {
  return encode_base64(std::as_bytes(std::span(values)));
}

template <typename T>
Result<std::vector<T>> unpack(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  if (member == nullptr || member->text() == nullptr) return manifest_member_error(name);
  auto bytes = decode_base64(*member->text());
  if (!bytes || bytes->size() % sizeof(T) != 0) return manifest_member_error(name);
  std::vector<T> values(bytes->size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

Json shape_to_json(const Shape& shape) { return Json::Array(shape.begin(), shape.end()); }

Result<Shape> shape_from_json(const Json& json, Index least) {
  Shape shape;
  if (json.array() == nullptr) return manifest_member_error("shape");
  for (const Json& size : *json.array()) {
    const auto value = size.integer();
    if (!value || *value < least) return manifest_member_error("shape");
    shape.push_back(*value);
  }
  if (shape.size() > kMaxRank) return manifest_member_error("shape");
  return shape;
}

/// A column of `count` values; null if it is not there and need not be.
Result<const Json::Array*> column(const Json& arrays, std::string_view name, std::size_t count,
                                  bool required) {
  const Json* member = arrays.find(name);
  if (member == nullptr && !required) return static_cast<const Json::Array*>(nullptr);
  if (member == nullptr || member->array() == nullptr) return manifest_member_error(name);
  if (member->array()->size() != count) return columns_error(name);
  return member->array();
}

struct Columns {
  const Json::Array* dtype;
  const Json::Array* shape;
  const Json::Array* chunk;
  const Json::Array* codec;
  const Json::Array* cast_from;
  const Json::Array* sha256;
  const Json::Array* pieces;
  const Json::Array* spec;
  const Json::Array* part;
  const Json::Array* offset;
};

Result<Columns> find_columns(const Json& json, std::size_t count, bool parts) {
  const Json* arrays = json.find("arrays");
  if (arrays == nullptr || arrays->object() == nullptr) return manifest_member_error("arrays");
  Columns columns{};
  CAIRN_TRY_ASSIGN(columns.dtype, column(*arrays, "dtype", count, true));
  CAIRN_TRY_ASSIGN(columns.shape, column(*arrays, "shape", count, true));
  CAIRN_TRY_ASSIGN(columns.chunk, column(*arrays, "chunk", count, !parts));
  CAIRN_TRY_ASSIGN(columns.codec, column(*arrays, "codec", count, !parts));
  CAIRN_TRY_ASSIGN(columns.cast_from, column(*arrays, "cast_from", count, false));
  CAIRN_TRY_ASSIGN(columns.sha256, column(*arrays, "sha256", count, false));
  CAIRN_TRY_ASSIGN(columns.pieces, column(*arrays, "pieces", count, false));
  CAIRN_TRY_ASSIGN(columns.spec, column(*arrays, "spec", count, false));
  CAIRN_TRY_ASSIGN(columns.part, column(*arrays, "part", count, parts));
  CAIRN_TRY_ASSIGN(columns.offset, column(*arrays, "offset", count, parts));
  return columns;
}

Result<DType> dtype_at(const Json::Array& values, std::size_t i) {
  const auto dtype = values[i].text() != nullptr ? parse_dtype(*values[i].text()) : std::nullopt;
  if (!dtype) return manifest_member_error("dtype");
  return *dtype;
}

bool is_size(const Json& json) {
  return json.unsigned_integer().value_or(UINT64_MAX) <= format::kMaxArrayBytes;
}

/// The length of a header stands before it.
bool is_header_size(const Json& json) {
  return json.unsigned_integer().value_or(UINT64_MAX) <= format::safetensors::kMaxHeaderBytes + 8;
}

Result<std::vector<ManifestPart>> parts_from_json(const Json& json) {
  std::vector<ManifestPart> parts;
  const Json* list = json.find("parts");
  if (list == nullptr) return parts;
  if (list->array() == nullptr) return manifest_member_error("parts");
  for (const Json& item : *list->array()) {
    const Json* name = item.find("name");
    const Json* bytes = item.find("bytes");
    const Json* header = item.find("header_bytes");
    const Json* crc = item.find("header_crc32c");
    // A manifest inside its own file leaves the name empty.
    if (name == nullptr || name->text() == nullptr ||
        !(name->text()->empty() || is_safe_relative_path(*name->text())) || bytes == nullptr ||
        !is_size(*bytes) || header == nullptr || !is_header_size(*header) || crc == nullptr ||
        crc->unsigned_integer().value_or(UINT64_MAX) > UINT32_MAX) {
      return manifest_member_error("parts");
    }
    parts.push_back({*name->text(), *bytes->unsigned_integer(), *header->unsigned_integer(),
                     static_cast<std::uint32_t>(*crc->unsigned_integer())});
  }
  // An array knows its part by name.
  std::unordered_set<std::string_view> names;
  for (const ManifestPart& part : parts) {
    if (!names.insert(part.name).second) return manifest_member_error("parts");
  }
  return parts;
}

Result<void> place_in_part(const Columns& columns, std::size_t i, const Manifest& manifest,
                           format::StoredArray& stored) {
  const auto part = (*columns.part)[i].unsigned_integer();
  const auto offset = (*columns.offset)[i].unsigned_integer();
  if (!part || *part >= manifest.parts.size() || !offset) return manifest_member_error("part");
  stored.key = manifest.parts[*part].name;
  stored.one_object = true;
  if (*offset > format::kMaxArrayBytes) return manifest_member_error("offset");
  stored.offset = *offset + manifest.parts[*part].header_bytes;
  stored.packed = bit_width(stored.dtype) < 8 && stored.dtype != DType::kBool;
  stored.chunk_shape = stored.shape;
  for (Index& size : stored.chunk_shape) size = std::max<Index>(size, 1);
  return {};
}

Result<void> place_in_directory(const Columns& columns, std::size_t i, const Json::Array& codecs,
                                const KeyPath& path, format::StoredArray& stored) {
  CAIRN_TRY_ASSIGN(stored.chunk_shape, shape_from_json((*columns.chunk)[i], 1));
  if (stored.chunk_shape.size() != stored.shape.size()) return manifest_member_error("chunk");
  const auto codec = (*columns.codec)[i].unsigned_integer();
  if (!codec || *codec >= codecs.size()) return manifest_member_error("codec");
  stored.codec = format::CodecSpec(codecs[*codec]);
  stored.key = path.directory();
  return {};
}

/// Hands out the next `count` chunk lengths and their checksums to one array after another.
class SumReader {
 public:
  SumReader(std::uint64_t block_bytes, std::vector<std::uint64_t> lengths,
            std::vector<std::uint32_t> crcs)
      : block_bytes_(block_bytes), lengths_(std::move(lengths)), crcs_(std::move(crcs)) {}

  Result<ChunkSums> next(std::uint64_t chunks) {
    if (chunks > lengths_.size() - chunk_) return columns_error("lengths");
    std::vector<std::uint64_t> lengths(
        lengths_.begin() + static_cast<std::ptrdiff_t>(chunk_),
        lengths_.begin() + static_cast<std::ptrdiff_t>(chunk_ + chunks));
    std::uint64_t blocks = 0;
    for (const std::uint64_t length : lengths) {
      blocks += block_count(length, block_bytes_);
      if (blocks > crcs_.size() - block_) return columns_error("crcs");
    }
    std::vector<std::uint32_t> crcs(crcs_.begin() + static_cast<std::ptrdiff_t>(block_),
                                    crcs_.begin() + static_cast<std::ptrdiff_t>(block_ + blocks));
    chunk_ += chunks;
    block_ += blocks;
    return ChunkSums::make(block_bytes_, std::move(lengths), std::move(crcs));
  }
  bool at_end() const { return chunk_ == lengths_.size() && block_ == crcs_.size(); }

 private:
  std::uint64_t block_bytes_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::uint32_t> crcs_;
  std::uint64_t chunk_ = 0;
  std::uint64_t block_ = 0;
};

Result<SumReader> sums_from_json(const Json& json) {
  const Json* block = json.find("block_bytes");
  const auto block_bytes = block != nullptr ? block->unsigned_integer() : std::nullopt;
  if (!block_bytes || !std::has_single_bit(*block_bytes) || *block_bytes < 4096 ||
      *block_bytes > kMaxBlockBytes) {
    return manifest_member_error("block_bytes");
  }
  CAIRN_TRY_ASSIGN(auto lengths, unpack<std::uint64_t>(json, "lengths"));
  CAIRN_TRY_ASSIGN(auto crcs, unpack<std::uint32_t>(json, "crcs"));
  // A length near 2^64 would wrap when it is rounded up to blocks.
  if (std::ranges::any_of(lengths,
                          [](std::uint64_t length) { return length > (std::uint64_t{1} << 56); })) {
    return manifest_member_error("lengths");
  }
  return SumReader(*block_bytes, std::move(lengths), std::move(crcs));
}

/// Hands out digests of pieces in the same way.
class PieceReader {
 public:
  PieceReader() = default;
  PieceReader(std::vector<std::uint64_t> ends, std::vector<Sha256Digest> digests)
      : ends_(std::move(ends)), digests_(std::move(digests)) {}

  Result<std::vector<PieceDigest>> next(const Json& count, const format::StoredArray& stored) {
    const auto wanted = count.unsigned_integer();
    if (!wanted || *wanted > ends_.size() - at_) return columns_error("pieces");
    std::vector<PieceDigest> pieces;
    for (std::uint64_t n = 0; n < *wanted; ++n, ++at_) {
      const std::uint64_t before = n == 0 ? 0 : pieces.back().end;
      const bool follows = stored.one_object ? ends_[at_] > before : ends_[at_] == before + 1;
      if (!follows) return manifest_member_error("piece_ends");
      pieces.push_back({ends_[at_], digests_[at_]});
    }
    if (!pieces.empty() && pieces.back().end != piece_total(stored))
      return manifest_member_error("piece_ends");
    return pieces;
  }
  bool at_end() const { return at_ == ends_.size(); }

 private:
  std::vector<std::uint64_t> ends_;
  std::vector<Sha256Digest> digests_;
  std::size_t at_ = 0;
};

Result<PieceReader> pieces_from_json(const Json& json) {
  CAIRN_TRY_ASSIGN(auto ends, unpack<std::uint64_t>(json, "piece_ends"));
  CAIRN_TRY_ASSIGN(auto digests, unpack<Sha256Digest>(json, "piece_sha256"));
  if (ends.size() != digests.size()) return manifest_member_error("piece_sha256");
  return PieceReader(std::move(ends), std::move(digests));
}

/// Index of `codec` in the table, adding it if it is new. The table is short.
std::uint64_t codec_number(Json::Array& table, const Json& codec) {
  const auto number = static_cast<std::uint64_t>(std::ranges::find(table, codec) - table.begin());
  if (number == table.size()) table.push_back(codec);
  return number;
}

}  // namespace

Error manifest_member_error(std::string_view name) {
  return Error(Code::kCorrupt, "manifest/bad-member",
               fmt::format("the manifest's member '{}' is missing or not valid", name));
}

void columns_to_json(const Manifest& manifest, Json& json) {
  Json::Array dtype, shape, chunk, codec, cast_from, sha256, pieces, spec, part, offset, codecs,
      parts;
  std::vector<std::uint64_t> lengths;
  std::vector<std::uint32_t> crcs;
  std::vector<std::uint64_t> piece_ends;
  std::vector<Sha256Digest> piece_sha256;
  bool any_cast = false;
  bool any_sha = false;
  bool any_spec = false;
  const bool in_parts = manifest.layout == kSafetensorsLayout;
  std::unordered_map<std::string_view, std::uint64_t> part_number;
  for (const ManifestPart& item : manifest.parts) {
    part_number.emplace(item.name, parts.size());
    parts.emplace_back(Json::Object{{"name", item.name},
                                    {"bytes", item.bytes},
                                    {"header_bytes", item.header_bytes},
                                    {"header_crc32c", std::uint64_t{item.header_crc.value_or(0)}}});
  }
  for (const ManifestArray& array : manifest.arrays) {
    dtype.emplace_back(dtype_name(array.stored.dtype));
    shape.push_back(shape_to_json(array.stored.shape));
    if (in_parts) {
      const std::uint64_t number = part_number.at(array.stored.key);
      part.emplace_back(number);
      offset.emplace_back(array.stored.offset - manifest.parts[number].header_bytes);
    } else {
      chunk.push_back(shape_to_json(array.stored.chunk_shape));
      codec.emplace_back(codec_number(codecs, array.stored.codec.config()));
    }
    cast_from.push_back(array.cast_from ? Json(dtype_name(*array.cast_from)) : Json());
    sha256.push_back(array.sha256.empty() ? Json() : Json(array.sha256));
    any_cast |= array.cast_from.has_value();
    any_sha |= !array.sha256.empty();
    pieces.emplace_back(static_cast<std::uint64_t>(array.pieces.size()));
    for (const PieceDigest& piece : array.pieces) {
      piece_ends.push_back(piece.end);
      piece_sha256.push_back(piece.sha256);
    }
    spec.push_back(array.spec ? array.spec->to_json() : Json());
    any_spec |= array.spec.has_value();
    lengths.insert(lengths.end(), array.sums.lengths().begin(), array.sums.lengths().end());
    crcs.insert(crcs.end(), array.sums.crcs().begin(), array.sums.crcs().end());
  }
  Json::Object arrays{{"dtype", std::move(dtype)}, {"shape", std::move(shape)}};
  if (in_parts) {
    arrays.emplace_back("part", std::move(part));
    arrays.emplace_back("offset", std::move(offset));
    json.set("parts", std::move(parts));
  } else {
    arrays.emplace_back("chunk", std::move(chunk));
    arrays.emplace_back("codec", std::move(codec));
    json.set("codecs", std::move(codecs));
  }
  if (any_cast) arrays.emplace_back("cast_from", std::move(cast_from));
  if (any_sha) arrays.emplace_back("sha256", std::move(sha256));
  if (!piece_ends.empty()) arrays.emplace_back("pieces", std::move(pieces));
  if (any_spec) arrays.emplace_back("spec", std::move(spec));
  json.set("arrays", std::move(arrays));
  json.set("block_bytes", kBlockBytes);
  json.set("lengths", pack(lengths));
  json.set("crcs", pack(crcs));
  if (piece_ends.empty()) return;
  json.set("piece_ends", pack(piece_ends));
  json.set("piece_sha256", pack(piece_sha256));
}

Result<void> columns_from_json(const Json& json, std::vector<KeyPath> paths, Manifest& manifest) {
  const bool in_parts = manifest.layout == kSafetensorsLayout;
  CAIRN_TRY_ASSIGN(const Columns columns, find_columns(json, paths.size(), in_parts));
  CAIRN_TRY_ASSIGN(manifest.parts, parts_from_json(json));
  CAIRN_TRY_ASSIGN(SumReader sums, sums_from_json(json));
  PieceReader pieces;
  if (columns.pieces != nullptr) {
    CAIRN_TRY_ASSIGN(pieces, pieces_from_json(json));
  }
  const Json* codecs = json.find("codecs");
  if (!in_parts && (codecs == nullptr || codecs->array() == nullptr))
    return manifest_member_error("codecs");
  manifest.arrays.reserve(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    ManifestArray array;
    CAIRN_TRY_ASSIGN(array.stored.dtype, dtype_at(*columns.dtype, i));
    CAIRN_TRY_ASSIGN(array.stored.shape, shape_from_json((*columns.shape)[i], 0));
    CAIRN_TRY(in_parts ? place_in_part(columns, i, manifest, array.stored)
                       : place_in_directory(columns, i, *codecs->array(), paths[i], array.stored));
    CAIRN_TRY(array.stored.check_sizes());
    if (columns.cast_from != nullptr && !(*columns.cast_from)[i].is_null()) {
      CAIRN_TRY_ASSIGN(array.cast_from, dtype_at(*columns.cast_from, i));
    }
    if (columns.sha256 != nullptr && (*columns.sha256)[i].text() != nullptr) {
      array.sha256 = *(*columns.sha256)[i].text();
    }
    if (columns.pieces != nullptr) {
      CAIRN_TRY_ASSIGN(array.pieces, pieces.next((*columns.pieces)[i], array.stored));
    }
    if (columns.spec != nullptr && !(*columns.spec)[i].is_null()) {
      auto spec = PartitionSpec::from_json((*columns.spec)[i]);
      if (!spec) return manifest_member_error("spec");
      array.spec = *std::move(spec);
    }
    CAIRN_TRY_ASSIGN(array.sums, sums.next(array.stored.chunk_count()));
    // Who reads ranges of a raw chunk relies on it.
    const auto is_full = [&](std::uint64_t length) { return length == array.stored.chunk_bytes(); };
    if (array.stored.codec.is_raw() && !std::ranges::all_of(array.sums.lengths(), is_full))
      return columns_error("lengths");
    array.path = std::move(paths[i]);
    manifest.arrays.push_back(std::move(array));
  }
  if (!sums.at_end()) return columns_error("lengths");
  if (!pieces.at_end()) return columns_error("pieces");
  return {};
}

}  // namespace cairn
