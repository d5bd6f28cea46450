// SPDX-License-Identifier: Apache-2.0
// `tensorstore_index.json`, the list of arrays of the reference system: read in both versions,
// merged prefix by prefix, and written so that every reader of it accepts it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/array/shape.h"
#include "cairn/base/json.h"
#include "cairn/manifest/manifest.h"

namespace cairn {

/// Longest index that is read.
constexpr std::size_t kMaxEformerIndexBytes = std::size_t{256} << 20;
/// Enough for 3.7 million arrays of rank 2, in 1.6 GB of memory.
constexpr JsonLimits kEformerIndexLimits = {.bytes = kMaxEformerIndexBytes,
                                            .values = std::size_t{1} << 25};

/// Most prefixes of an index: an opened prefix takes a hundred times the bytes of its entry.
constexpr std::size_t kMaxIndexedPrefixes = std::size_t{1} << 16;

struct IndexedArray {
  std::string path;  ///< directory below the checkpoint
  Shape shape;
  std::string dtype;  ///< JAX's name, as written
  bool operator==(const IndexedArray&) const = default;
};

struct IndexedPrefix {
  std::string name;
  std::vector<IndexedArray> arrays;
};

struct EformerIndex {
  std::optional<std::vector<IndexedArray>> arrays;  ///< version 1, or a tree saved without prefix
  std::vector<IndexedPrefix> prefixes;
  bool knows_prefixes = false;  ///< version 2, even if it lists none

  /// The list of a prefix (of the empty one: `arrays`); null if there is none.
  const std::vector<IndexedArray>* find(std::string_view prefix) const;
};

/// Pure; hostile bytes. `corrupt`: index/bad-json, index/format (another `format`),
/// index/bad-member, index/too-many-prefixes, index/unsafe-path (a path that leaves the
/// checkpoint), index/duplicate-path.
Result<EformerIndex> parse_eformer_index(std::string_view text);

/// Converts a part of a key path of the reference system to ours: children of nodes without keys in
/// JAX are `<flat index 0>` there and `0` here.
std::string part_of_reference(std::string_view part);

/// The entries of the index for the arrays of a manifest.
std::vector<IndexedArray> indexed_arrays(const Manifest& manifest);

/// One prefix's list for the index.
Json index_list(const std::vector<IndexedArray>& arrays);

/// Prefixes (the empty one is the tree without prefix) and their new lists; nullopt removes the
/// entry.
using IndexChanges = std::vector<std::pair<std::string, std::optional<Json>>>;

/// `current` (the text in place, if any) with the lists of some prefixes replaced or removed;
/// everything else stays. A text that is not a JSON object is replaced whole. nullopt: there is no
/// index, and none is needed. `invalid_argument` (index/too-many-prefixes).
Result<std::optional<std::string>> merge_eformer_index(std::optional<std::string_view> current,
                                                       const IndexChanges& changes);

}  // namespace cairn
