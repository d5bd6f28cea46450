// SPDX-License-Identifier: Apache-2.0
// The digest that a manifest should have, whatever else is wrong with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/array/shape.h"
#include "cairn/base/base64.h"
#include "cairn/base/bytes.h"
#include "cairn/base/checked.h"
#include "cairn/base/json.h"
#include "cairn/base/sha256.h"

namespace cairn::fuzz {

template <typename T>
std::vector<T> column(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  const bool is_text = member != nullptr && member->text() != nullptr;
  const auto bytes = decode_base64(is_text ? *member->text() : std::string());
  std::vector<T> values(bytes ? bytes->size() / sizeof(T) : 0);
  if (!values.empty()) std::memcpy(values.data(), bytes->data(), values.size() * sizeof(T));
  return values;
}

inline const Json::Array& list(const Json* json, std::string_view name) {
  static const Json::Array kNone;
  const Json* member = json != nullptr ? json->find(name) : nullptr;
  return member != nullptr && member->array() != nullptr ? *member->array() : kNone;
}

inline Shape shape_of(const Json::Array& column, std::size_t i) {
  Shape shape;
  if (i >= column.size() || column[i].array() == nullptr) return shape;
  for (const Json& size : *column[i].array())
    shape.push_back(std::max<Index>(size.integer().value_or(0), 0));
  return shape;
}

/// Modulo 2^64, as a parser that checks nothing would count them.
inline std::uint64_t chunk_count(const Shape& shape, const Shape& chunk) {
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Index step = std::max<Index>(d < chunk.size() ? chunk[d] : shape[d], 1);
    count *= static_cast<std::uint64_t>(ceil_div(shape[d], step));
  }
  return count;
}

/// docs/format/manifest.md
inline std::string digest_of(const Json& json) {
  Sha256 sha;
  if (const Json* structure = json.find("structure")) sha.update(as_bytes(dump_json(*structure)));
  const Json* arrays = json.find("arrays");
  const Json::Array& dtypes = list(arrays, "dtype");
  const auto lengths = column<std::uint64_t>(json, "lengths");
  const auto crcs = column<std::uint32_t>(json, "crcs");
  const Json* member = json.find("block_bytes");
  const std::uint64_t block =
      std::max<std::uint64_t>(member != nullptr ? member->unsigned_integer().value_or(1) : 1, 1);
  std::size_t chunk_at = 0;
  std::size_t block_at = 0;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    const Shape shape = shape_of(list(arrays, "shape"), i);
    const std::string name = dtypes[i].text() != nullptr ? *dtypes[i].text() : "";
    sha.update(as_bytes("\n" + name + to_string(shape)));
    const std::uint64_t chunks = std::min<std::uint64_t>(
        chunk_count(shape, shape_of(list(arrays, "chunk"), i)), lengths.size() - chunk_at);
    const std::span mine = std::span(lengths).subspan(chunk_at, chunks);
    chunk_at += chunks;
    std::uint64_t blocks = 0;
    for (const std::uint64_t length : mine)
      blocks = std::min<std::uint64_t>(blocks + length / block + (length % block != 0 ? 1 : 0),
                                       crcs.size() - block_at);
    sha.update(std::as_bytes(mine));
    sha.update(std::as_bytes(std::span(crcs).subspan(block_at, blocks)));
    block_at += blocks;
  }
  return sha.hex();
}

}  // namespace cairn::fuzz
