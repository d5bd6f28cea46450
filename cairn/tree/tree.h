// SPDX-License-Identifier: Apache-2.0
// `Tree`: what is saved and loaded. A value type: a leaf, or a container with named children. See
// `flatten.h` for leaves in order and `structure.h` for a tree without its arrays.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cairn/sharding/sharded_array.h"
#include "cairn/tree/key_path.h"
#include "cairn/tree/value.h"

namespace cairn {

using Leaf = std::variant<Value, ShardedArray>;

/// It has a shape and a dtype.
inline bool is_array_like(const Leaf& leaf) { return std::holds_alternative<ShardedArray>(leaf); }

/// Deepest tree that is accepted, and so the most parts of a key path.
constexpr int kMaxTreeDepth = 200;

enum class TreeKind : std::uint8_t {
  kLeaf,
  kDict,        ///< children by Key
  kList,        ///< children by index
  kTuple,       ///< children by index
  kNamedTuple,  ///< children by field, in the order of the fields
  kAttributes,  ///< dataclass and the like: children by attribute
  kCustom,      ///< any other registered node: children by Key
  kNone,        ///< JAX's None: a container without children
};

/// Threading: compatible. Copies share array memory.
class Tree {
 public:
  using Child = std::pair<Key, Tree>;
  using Children = std::vector<Child>;

  Tree(Leaf leaf);           // NOLINT(google-explicit-constructor)
  Tree(Array array);         // NOLINT(google-explicit-constructor)
  Tree(ShardedArray array);  // NOLINT(google-explicit-constructor)
  Tree(Value value);         // NOLINT(google-explicit-constructor)

  static Tree dict(Children children = {});
  static Tree list(std::vector<Tree> items = {});
  static Tree tuple(std::vector<Tree> items = {});
  static Tree named_tuple(std::string class_name, Children fields);
  static Tree attributes(std::string class_name, Children attributes);
  static Tree custom(std::string class_name, Children children);
  static Tree none();
  /// A container of any kind. Children of lists and tuples are renumbered. REQUIRES: not kLeaf.
  static Tree node(TreeKind kind, Children children, std::string class_name = "",
                   std::string statics = "");

  TreeKind kind() const { return kind_; }
  bool is_leaf() const { return kind_ == TreeKind::kLeaf; }
  /// REQUIRES: is_leaf().
  const Leaf& leaf() const { return leaf_; }
  Leaf& leaf() { return leaf_; }
  /// In the given order; flatten() sorts dicts. In lists and tuples the position counts, not the
  /// key.
  const Children& children() const { return children_; }
  Children& children() { return children_; }
  /// "module:QualifiedName" of named tuples, attribute and custom nodes; may be empty.
  const std::string& class_name() const { return class_name_; }
  /// What the class needs besides its children, in the notation of the code that made the tree; may
  /// be empty.
  const std::string& statics() const { return statics_; }

  /// Child by key; null if there is none. For lists and tuples the key is the index. Linear for
  /// others.
  const Tree* find(const Key& key) const;
  /// Adds or replaces a child by key; not for lists and tuples. Linear: give dict() all children of
  /// a large one at once.
  void set(Key key, Tree child);

 private:
  Tree(TreeKind kind, Children children, std::string class_name);
  TreeKind kind_ = TreeKind::kNone;
  Leaf leaf_;
  Children children_;
  std::string class_name_;
  std::string statics_;
};

}  // namespace cairn
