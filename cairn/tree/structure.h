// SPDX-License-Identifier: Apache-2.0
// A tree without its arrays, as JSON: container kinds, key types, class names, and the values of
// leaves that are not arrays. Never a pickle. docs/format/structure.md has the grammar:
//
//   node := "array"                         an array leaf; numbered in flatten()'s order
//         | null                            the None container
//         | {"value": typed value}          see value.h
//         | {"dict": [[key, node], ...]}    key: text or integer; sorted
//         | {"list": [node, ...]} | {"tuple": [node, ...]}
//         | {"namedtuple" | "attributes" | "custom": [[key, node], ...], "class": text}
//
// Members of a node that are not listed here are ignored.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/tree/flatten.h"

namespace cairn {

/// Deepest JSON of a structure: three levels for each node, and four for a complex value. A parser
/// of a file that contains one adds the levels around it to JsonLimits::depth.
constexpr int kMaxStructureJsonDepth = 3 * kMaxTreeDepth + 4;

/// `invalid_argument` for values that cannot be stored (value.h), keys and class names that are not
/// UTF-8 (structure/not-utf8), and errors of flatten().
Result<Json> structure_to_json(const Tree& tree);

/// Rebuilds the tree from a structure and its arrays. `corrupt`: structure/bad-node,
/// structure/bad-key (not sorted in a dict, or colliding), structure/too-deep, value/bad-json,
/// structure/too-few-arrays, structure/too-many-arrays. Memory is proportional to the JSON.
Result<Tree> tree_from_structure(const Json& structure, std::vector<ShardedArray> arrays);

/// Limit on the total bytes of the key paths of all leaves of a structure.
constexpr std::uint64_t kMaxPathBytes = std::uint64_t{1} << 30;

/// Key paths of the arrays of a structure, and all other leaves with their values, without the
/// arrays. Errors of tree_from_structure(), and `corrupt` (structure/too-large).
struct StructureLeaves {
  std::vector<KeyPath> arrays;
  std::vector<std::pair<KeyPath, Value>> values;
};
Result<StructureLeaves> structure_leaves(const Json& structure);

}  // namespace cairn
