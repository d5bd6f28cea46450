// SPDX-License-Identifier: Apache-2.0
// The leaves of a tree in the order of JAX, with their key paths, and the inverse.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/tree/tree.h"

namespace cairn {

struct NamedLeaf {
  KeyPath path;
  Leaf leaf;
};

/// All leaves, dicts in sorted key order. `invalid_argument` before anything else happens:
/// keypath/collision (two leaves or subtrees with one path, such as keys 0 and "0" of one dict;
/// names both key paths), keypath/part-too-long, tree/too-deep. Linear in leaves.
Result<std::vector<NamedLeaf>> flatten(const Tree& tree);

/// The same tree with leaves replaced, in the order of flatten(). `invalid_argument`
/// (tree/leaf-count).
Result<Tree> with_leaves(Tree tree, std::vector<Leaf> leaves);

/// Nested dicts with text keys from key paths: the form of a checkpoint without structure.
/// `invalid_argument` (keypath/collision) if a leaf would be the parent of another.
Result<Tree> nest(std::vector<NamedLeaf> leaves);

/// The same tree with fn(path, leaf) for each leaf, called in order; stops at the first error.
Result<Tree> map_leaves(Tree tree,
                        const std::function<Result<Leaf>(const KeyPath&, const Leaf&)>& fn);

}  // namespace cairn
