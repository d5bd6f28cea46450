// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/tree.h"

#include <algorithm>

namespace cairn {
namespace {

Tree::Children unnumbered(std::vector<Tree> items) {
  Tree::Children children;
  children.reserve(items.size());
  for (Tree& item : items) children.emplace_back(0, std::move(item));
  return children;
}

template <typename Children>
auto find_child(Children& children, const Key& key) {
  return std::find_if(children.begin(), children.end(),
                      [&key](const Tree::Child& child) { return child.first == key; });
}

}  // namespace

Tree::Tree(Leaf leaf) : kind_(TreeKind::kLeaf), leaf_(std::move(leaf)) {}
Tree::Tree(Array array) : Tree(Leaf(ShardedArray(std::move(array)))) {}
Tree::Tree(ShardedArray array) : Tree(Leaf(std::move(array))) {}
Tree::Tree(Value value) : Tree(Leaf(std::move(value))) {}

Tree::Tree(TreeKind kind, Children children, std::string class_name)
    : kind_(kind), children_(std::move(children)), class_name_(std::move(class_name)) {}

Tree Tree::node(TreeKind kind, Children children, std::string class_name, std::string statics) {
  if (kind == TreeKind::kList || kind == TreeKind::kTuple) {
    std::int64_t index = 0;
    for (Child& child : children) child.first = Key(index++);
  }
  Tree made(kind, std::move(children), std::move(class_name));
  made.statics_ = std::move(statics);
  return made;
}
Tree Tree::dict(Children children) { return {TreeKind::kDict, std::move(children), ""}; }
Tree Tree::list(std::vector<Tree> items) {
  return node(TreeKind::kList, unnumbered(std::move(items)));
}
Tree Tree::tuple(std::vector<Tree> items) {
  return node(TreeKind::kTuple, unnumbered(std::move(items)));
}
Tree Tree::named_tuple(std::string class_name, Children fields) {
  return {TreeKind::kNamedTuple, std::move(fields), std::move(class_name)};
}
Tree Tree::attributes(std::string class_name, Children attributes) {
  return {TreeKind::kAttributes, std::move(attributes), std::move(class_name)};
}
Tree Tree::custom(std::string class_name, Children children) {
  return {TreeKind::kCustom, std::move(children), std::move(class_name)};
}
Tree Tree::none() { return {TreeKind::kNone, {}, ""}; }

const Tree* Tree::find(const Key& key) const {
  if (kind_ == TreeKind::kList || kind_ == TreeKind::kTuple) {
    if (!key.is_number() || key.number() < 0) return nullptr;
    const auto index = static_cast<std::size_t>(key.number());
    return index < children_.size() ? &children_[index].second : nullptr;
  }
  const auto found = find_child(children_, key);
  return found == children_.end() ? nullptr : &found->second;
}

void Tree::set(Key key, Tree child) {
  const auto found = find_child(children_, key);
  if (found != children_.end()) {
    found->second = std::move(child);
  } else {
    children_.emplace_back(std::move(key), std::move(child));
  }
}

}  // namespace cairn
