// SPDX-License-Identifier: Apache-2.0
// `<base>.safetensors.index.json`: which part holds which tensor. `reader.h` reads one, with its
// parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/base/json.h"

namespace cairn::format::safetensors {

/// Longest index that is read.
constexpr std::size_t kMaxIndexBytes = std::size_t{256} << 20;
/// Most values in one (JsonLimits::values): 8 million tensors, 0.8 GB of memory.
constexpr std::size_t kMaxIndexValues = std::size_t{1} << 24;

/// Tensor to part.
using WeightMap = std::vector<std::pair<std::string, std::string>>;

/// Threading: compatible.
struct Index {
  WeightMap weight_map;  ///< parsed: by tensor; to be written: in any order
  Json metadata;         ///< object or null

  /// Parts, each once, sorted.
  std::vector<std::string> parts() const;
};

/// Pure. `corrupt`, each with a reason: safetensors-index/not-json, /no-weight-map,
/// /weight-map-type, /metadata-type, /part-type, /part-path (a name that would leave the index's
/// folder or that no store takes: empty, absolute, "..", NUL), /duplicate-tensor,
/// /duplicate-member.
Result<Index> parse_index(std::string_view text);
/// As huggingface_hub writes it, indent 2; metadata gets "total_size".
std::string dump_index(const Index& index, std::uint64_t total_size);

/// "model-00001-of-00003.safetensors": part 1 of 3. Parts are counted from 1.
std::string shard_filename(std::string_view base, std::size_t part, std::size_t parts);
/// "model.safetensors.index.json"
std::string index_filename(std::string_view base);
/// The base that names a set of parts: "/a/model" for "/a/model.safetensors",
/// "/a/model.safetensors.index.json", "/a/model-00001-of-00003.safetensors" and
/// "/a/model-00001-of-00003"; any other text is its own base.
std::string derive_base_prefix_from_path(std::string_view path);

}  // namespace cairn::format::safetensors
