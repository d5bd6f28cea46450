// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/structure.h"

#include <array>

#include <fmt/format.h>

#include "cairn/base/utf8.h"
#include "cairn/tree/child_order.h"
#include "cairn/tree/key_depth.h"

namespace cairn {
namespace {

struct KindName {
  TreeKind kind;
  std::string_view name;
  bool keyed;  // children are [key, node], otherwise plain nodes
  bool classed;
};
constexpr std::array<KindName, 6> kContainers = {{
    {TreeKind::kDict, "dict", true, false},
    {TreeKind::kList, "list", false, false},
    {TreeKind::kTuple, "tuple", false, false},
    {TreeKind::kNamedTuple, "namedtuple", true, true},
    {TreeKind::kAttributes, "attributes", true, true},
    {TreeKind::kCustom, "custom", true, true},
}};

const KindName& container(TreeKind kind) {
  std::size_t row = 0;
  while (kContainers[row].kind != kind) ++row;
  return kContainers[row];
}

Result<void> check_text(std::string_view text, std::string_view what, const Parts& parts) {
  if (is_utf8(text)) return {};
  return Error(Code::kInvalidArgument, "structure/not-utf8",
               fmt::format("{} of {} is not UTF-8", what, place_name(parts)));
}

Result<Json> key_to_json(const Key& key, const Parts& above) {
  if (key.is_number()) return Json(key.number());
  CAIRN_TRY(check_text(key.text(), "a key", above));
  return Json(key.text());
}

Result<Json> node_to_json(const Tree& node, Parts& parts);

Result<Json> children_to_json(const Tree& node, bool keyed, Parts& parts) {
  CAIRN_TRY_ASSIGN(const auto order, child_order(node, parts));
  Json::Array items;
  items.reserve(order.size());
  for (const std::size_t index : order) {
    const auto& [key, child] = node.children()[index];
    Json::Array pair;
    if (keyed) {
      pair.reserve(2);
      CAIRN_TRY_ASSIGN(Json key_json, key_to_json(key, parts));
      pair.push_back(std::move(key_json));
    }
    parts.push_back(child_part(node, index));
    CAIRN_TRY_ASSIGN(Json child_json, node_to_json(child, parts));
    parts.pop_back();
    if (keyed) {
      pair.push_back(std::move(child_json));
      items.emplace_back(std::move(pair));
    } else {
      items.push_back(std::move(child_json));
    }
  }
  return Json(std::move(items));
}

Result<Json> leaf_to_json(const Leaf& leaf, const Parts& parts) {
  if (is_array_like(leaf)) return Json("array");
  auto value = value_to_json(std::get<Value>(leaf));
  CAIRN_TRY_ASSIGN(Json typed,
                   std::move(value).in([&parts] { return "leaf " + place_name(parts); }));
  Json json;
  json.set("value", std::move(typed));
  return json;
}

Result<Json> node_to_json(const Tree& node, Parts& parts) {
  if (node.kind() == TreeKind::kNone) return Json();
  if (node.is_leaf()) return leaf_to_json(node.leaf(), parts);
  const KindName& kind = container(node.kind());
  CAIRN_TRY_ASSIGN(Json children, children_to_json(node, kind.keyed, parts));
  Json json;
  json.set(kind.name, std::move(children));
  if (kind.classed) {
    CAIRN_TRY(check_text(node.class_name(), "the class name", parts));
    json.set("class", node.class_name());
    CAIRN_TRY(check_text(node.statics(), "the static part", parts));
    if (!node.statics().empty()) json.set("static", node.statics());
  }
  return json;
}

// One node as it was read; children are not yet looked into.
struct Node {
  TreeKind kind = TreeKind::kNone;
  const Json* value = nullptr;  // of a leaf; null for an array
  std::vector<std::pair<Key, const Json*>> children;
  std::string class_name;
  std::string statics;
};

Error corrupt(const char* reason, const Parts& parts, std::string_view why) {
  return {Code::kCorrupt, reason, fmt::format("structure at {}: {}", place_name(parts), why)};
}

Result<Key> read_key(const Json& json, const Parts& above) {
  if (const std::string* text = json.text()) {
    if (text->size() <= kMaxKeyPartBytes) return Key(*text);
    return corrupt(
        "structure/bad-key", above,
        fmt::format("a key has {} bytes; at most {} are read", text->size(), kMaxKeyPartBytes));
  }
  if (const auto number = json.integer()) return Key(*number);
  return corrupt("structure/bad-key", above, "a key must be text or an integer of 64 bits");
}

Result<void> check_keys(const Node& node, const Parts& above) {
  std::vector<const Key*> keys;
  keys.reserve(node.children.size());
  for (const auto& [key, child] : node.children) {
    if (node.kind == TreeKind::kDict && !keys.empty() && key < *keys.back()) {
      return corrupt("structure/bad-key", above, "the keys of a dict must be sorted");
    }
    keys.push_back(&key);
  }
  if (const auto found = find_collision(std::move(keys))) {
    return Error(Code::kCorrupt, "structure/bad-key", collision_message(*found, above));
  }
  return {};
}

Result<void> read_children(const Json::Array& items, bool keyed, const Parts& parts, Node& node) {
  if (!items.empty() && parts.size() >= std::size_t{kMaxTreeDepth}) {
    return Error(Code::kCorrupt, "structure/too-deep",
                 fmt::format("the structure is more than {} levels deep", kMaxTreeDepth));
  }
  node.children.reserve(items.size());
  for (const Json& item : items) {
    if (!keyed) {
      node.children.emplace_back(static_cast<std::int64_t>(node.children.size()), &item);
      continue;
    }
    const Json::Array* pair = item.array();
    if (!pair || pair->size() != 2) {
      return corrupt("structure/bad-node", parts, "a child must be a pair of key and node");
    }
    CAIRN_TRY_ASSIGN(Key key, read_key(pair->front(), parts));
    node.children.emplace_back(std::move(key), &pair->back());
  }
  return keyed ? check_keys(node, parts) : Result<void>();
}

struct NodeMembers {
  const Json* value = nullptr;
  const Json* class_name = nullptr;
  const Json* statics = nullptr;
  const KindName* kind = nullptr;
  const Json* children = nullptr;
  int kinds = 0;  // how many members say what the node is
};

NodeMembers find_members(const Json::Object& object) {
  NodeMembers found;
  for (const auto& [name, json] : object) {
    if (name == "class") found.class_name = &json;
    if (name == "static") found.statics = &json;
    if (name == "value") {
      found.value = &json;
      ++found.kinds;
    }
    for (const KindName& row : kContainers) {
      if (name != row.name) continue;
      found.kind = &row;
      found.children = &json;
      ++found.kinds;
    }
  }
  return found;
}

Result<Node> read_node(const Json& json, const Parts& parts) {
  Node node;
  if (json.is_null()) return node;
  node.kind = TreeKind::kLeaf;
  if (json.text() && *json.text() == "array") return node;
  const NodeMembers found = json.object() ? find_members(*json.object()) : NodeMembers{};
  if (found.kinds != 1) {
    return corrupt("structure/bad-node", parts,
                   R"(a node is "array", null, or an object with one kind)");
  }
  node.value = found.value;
  if (!found.kind) return node;
  node.kind = found.kind->kind;
  if (!found.children->array()) {
    return corrupt("structure/bad-node", parts, "children must be an array");
  }
  if (found.kind->classed) {
    const std::string* name = found.class_name ? found.class_name->text() : nullptr;
    if (!name) return corrupt("structure/bad-node", parts, "'class' must be text");
    node.class_name = *name;
    const std::string* statics = found.statics ? found.statics->text() : nullptr;
    if (found.statics && !statics)
      return corrupt("structure/bad-node", parts, "'static' must be text");
    if (statics) node.statics = *statics;
  }
  CAIRN_TRY(read_children(*found.children->array(), found.kind->keyed, parts, node));
  return node;
}

Result<Value> read_value(const Json& json, const Parts& parts) {
  return value_from_json(json).in([&parts] { return "leaf " + place_name(parts); });
}

// Takes the arrays one after the other; `used` may pass their number, so that the caller can say
// how many there should be.
struct Builder {
  std::vector<ShardedArray>& arrays;
  std::size_t used = 0;
  Parts parts;

  Result<Tree> build(const Json& json) {
    CAIRN_TRY_ASSIGN(Node node, read_node(json, parts));
    if (node.kind == TreeKind::kNone) return Tree::none();
    if (node.kind == TreeKind::kLeaf) return build_leaf(node);
    Tree::Children children;
    children.reserve(node.children.size());
    for (auto& [key, child_json] : node.children) {
      parts.push_back(key.part());
      CAIRN_TRY_ASSIGN(Tree child, build(*child_json));
      parts.pop_back();
      children.emplace_back(std::move(key), std::move(child));
    }
    return Tree::node(node.kind, std::move(children), std::move(node.class_name),
                      std::move(node.statics));
  }

  Result<Tree> build_leaf(const Node& node) {
    if (node.value) {
      CAIRN_TRY_ASSIGN(Value value, read_value(*node.value, parts));
      return Tree(std::move(value));
    }
    if (used++ < arrays.size()) return Tree(std::move(arrays[used - 1]));
    return Tree(Value());
  }
};

struct Collector {
  StructureLeaves leaves = {};
  Parts parts = {};
  std::uint64_t path_bytes = 0;

  Result<void> collect(const Json& json, std::uint64_t above) {
    CAIRN_TRY_ASSIGN(const Node node, read_node(json, parts));
    if (node.kind == TreeKind::kLeaf) CAIRN_TRY(take(node, above));
    for (const auto& [key, child] : node.children) {
      parts.push_back(key.part());
      CAIRN_TRY(collect(*child, above + parts.back().size()));
      parts.pop_back();
    }
    return {};
  }

  // Each leaf has the names above it again: few bytes of JSON may stand for very many.
  Result<void> take(const Node& node, std::uint64_t bytes) {
    path_bytes += bytes;
    if (path_bytes > kMaxPathBytes) {
      return corrupt("structure/too-large", parts,
                     fmt::format("the paths of leaves up to here have more than {} bytes together",
                                 kMaxPathBytes));
    }
    if (!node.value) {
      leaves.arrays.emplace_back(parts);
      return {};
    }
    CAIRN_TRY_ASSIGN(Value value, read_value(*node.value, parts));
    leaves.values.emplace_back(KeyPath(parts), std::move(value));
    return {};
  }
};

}  // namespace

Result<Json> structure_to_json(const Tree& tree) {
  Parts parts;
  return node_to_json(tree, parts);
}

Result<Tree> tree_from_structure(const Json& structure, std::vector<ShardedArray> arrays) {
  Builder builder{arrays, 0, {}};
  CAIRN_TRY_ASSIGN(Tree tree, builder.build(structure));
  if (builder.used == arrays.size()) return tree;
  const bool few = arrays.size() < builder.used;
  return Error(
      Code::kCorrupt, few ? "structure/too-few-arrays" : "structure/too-many-arrays",
      fmt::format("the structure has {} arrays, {} are there", builder.used, arrays.size()));
}

Result<StructureLeaves> structure_leaves(const Json& structure) {
  Collector collector;
  CAIRN_TRY(collector.collect(structure, 0));
  return std::move(collector.leaves);
}

}  // namespace cairn
