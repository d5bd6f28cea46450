// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/flatten.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "cairn/base/error_list.h"
#include "cairn/tree/child_order.h"

namespace cairn {
namespace {

// fn(parts, leaf) for each leaf below `node`, a Tree or const Tree; `parts` names the node. What
// lies below keys that are wrong is left out.
template <typename AnyTree, typename Fn>
Result<void> walk(AnyTree& node, Parts& parts, ErrorList& errors, const Fn& fn) {
  if (node.is_leaf()) return fn(parts, node.leaf());
  const auto order = child_order(node, parts);
  if (!errors.take(order)) return {};
  for (const std::size_t index : *order) {
    parts.push_back(child_part(node, index));
    CAIRN_TRY(walk(node.children()[index].second, parts, errors, fn));
    parts.pop_back();
  }
  return {};
}

template <typename AnyTree, typename Fn>
Result<void> for_each_leaf(AnyTree& tree, const Fn& fn) {
  Parts parts;
  ErrorList errors;
  CAIRN_TRY(walk(tree, parts, errors, fn));
  return errors.result();
}

bool is_prefix(const KeyPath& a, const KeyPath& b) {
  const auto& shorter = a.parts();
  const auto& longer = b.parts();
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

// In sorted order a path stands right before the first one below it.
Result<void> check_nesting(const std::vector<NamedLeaf>& sorted) {
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].path.parts().size() > std::size_t{kMaxTreeDepth}) {
      return Error(Code::kInvalidArgument, "tree/too-deep",
                   fmt::format("key path '{}' has more than {} parts",
                               sorted[i].path.text().substr(0, 200), kMaxTreeDepth));
    }
    if (i + 1 < sorted.size() && is_prefix(sorted[i].path, sorted[i + 1].path)) {
      return Error(Code::kInvalidArgument, "keypath/collision",
                   fmt::format("'{}' cannot be a leaf beside the leaf '{}'", sorted[i].path.text(),
                               sorted[i + 1].path.text()));
    }
  }
  return {};
}

// `leaves` share their first `depth` parts and are sorted.
Tree nest_below(std::span<NamedLeaf> leaves, std::size_t depth) {
  if (leaves.size() == 1 && leaves.front().path.parts().size() == depth) {
    return std::move(leaves.front().leaf);
  }
  Tree::Children children;
  while (!leaves.empty()) {
    const std::string& part = leaves.front().path.parts()[depth];
    const auto end = std::find_if(leaves.begin(), leaves.end(), [&](const NamedLeaf& leaf) {
      return leaf.path.parts()[depth] != part;
    });
    const auto group = leaves.first(static_cast<std::size_t>(end - leaves.begin()));
    children.emplace_back(part, nest_below(group, depth + 1));
    leaves = leaves.subspan(group.size());
  }
  return Tree::dict(std::move(children));
}

}  // namespace

Result<std::vector<NamedLeaf>> flatten(const Tree& tree) {
  std::vector<NamedLeaf> leaves;
  CAIRN_TRY(for_each_leaf(tree, [&leaves](const Parts& parts, const Leaf& leaf) -> Result<void> {
    leaves.push_back({KeyPath(parts), leaf});
    return {};
  }));
  return leaves;
}

Result<Tree> map_leaves(Tree tree,
                        const std::function<Result<Leaf>(const KeyPath&, const Leaf&)>& fn) {
  CAIRN_TRY(for_each_leaf(tree, [&fn](const Parts& parts, Leaf& leaf) -> Result<void> {
    CAIRN_TRY_ASSIGN(leaf, fn(KeyPath(parts), leaf));
    return {};
  }));
  return tree;
}

Result<Tree> with_leaves(Tree tree, std::vector<Leaf> leaves) {
  std::size_t used = 0;
  CAIRN_TRY(for_each_leaf(tree, [&](const Parts&, Leaf& leaf) -> Result<void> {
    if (used < leaves.size()) leaf = std::move(leaves[used]);
    ++used;
    return {};
  }));
  if (used == leaves.size()) return tree;
  return Error(Code::kInvalidArgument, "tree/leaf-count",
               fmt::format("the tree has {} leaves, {} were given", used, leaves.size()));
}

Result<Tree> nest(std::vector<NamedLeaf> leaves) {
  std::sort(leaves.begin(), leaves.end(),
            [](const NamedLeaf& a, const NamedLeaf& b) { return a.path < b.path; });
  CAIRN_TRY(check_nesting(leaves));
  return nest_below(leaves, 0);
}

}  // namespace cairn
