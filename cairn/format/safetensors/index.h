// SPDX-License-Identifier: Apache-2.0
// `<base>.safetensors.index.json`: which part holds which tensor.
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

struct Index {
  std::vector<std::pair<std::string, std::string>> weight_map;  ///< tensor to part, in file order
  Json metadata;                                                ///< object or null

  /// Parts, each once, sorted.
  std::vector<std::string> parts() const;
};

/// Pure. `corrupt`, each with a reason: safetensors-index/not-json, /no-weight-map, /weight-map-type,
/// /part-type, /part-path (empty, absolute, "..", NUL), /duplicate-tensor.
Result<Index> parse_index(std::string_view text);
/// As huggingface_hub writes it, indent 2; metadata gets "total_size".
std::string dump_index(const Index& index, std::uint64_t total_size);

/// "model.safetensors" of 1, "model-00001-of-00003.safetensors" of 3 (part from 1).
std::string shard_filename(std::string_view base, std::size_t part, std::size_t parts);
/// "model.safetensors.index.json"
std::string index_filename(std::string_view base);
/// "/a/model.safetensors" and "/a/model.safetensors.index.json" give "/a/model"; else the text itself.
std::string derive_base_prefix_from_path(std::string_view path);

}  // namespace cairn::format::safetensors
