// SPDX-License-Identifier: Apache-2.0
// Leaves of a tree in JAX's order, with their key paths, and back.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "cairn/tree/tree.h"

namespace cairn::inline tree {

struct NamedLeaf {
  KeyPath path;
  Leaf leaf;
};

/// Deepest tree that is accepted.
constexpr int kMaxTreeDepth = 200;

/// All leaves, dicts in sorted key order. `invalid_argument` before anything else happens:
/// keypath/collision (two leaves or subtrees with one path, such as keys 0 and "0" of one dict; both
/// key paths are named), keypath/part-too-long, tree/too-deep. Linear in leaves.
Result<std::vector<NamedLeaf>> flatten(const Tree& tree);

/// The same tree with leaves replaced, in the order of flatten(). `invalid_argument` (tree/leaf-count).
Result<Tree> with_leaves(const Tree& tree, std::vector<Leaf> leaves);

/// A tree of the same structure whose leaves are key paths as text; the empty path is the prefix.
Result<Tree> leaf_key_paths(const Tree& tree, std::string_view prefix = "");

/// Nested dicts with text keys from key paths: what a checkpoint without structure becomes.
/// `invalid_argument` (keypath/collision) if a leaf stands where another has children.
Result<Tree> nest(std::vector<NamedLeaf> leaves);

/// fn(path, leaf) for each leaf in order; stops at the first error.
Result<Tree> map_leaves(const Tree& tree,
                        const std::function<Result<Leaf>(const KeyPath&, const Leaf&)>& fn);

}  // namespace cairn::inline tree
