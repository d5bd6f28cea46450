// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/eformer_structure.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/base64.h"
#include "cairn/base/pickle.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/names.h"
#include "cairn/manifest/pickled_values.h"
#include "cairn/tree/flatten.h"
#include "cairn/tree/key_depth.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

using Number = Pickle::Number;
using Children = std::vector<std::size_t>;

/// A short pickle can list one node again and again.
constexpr std::size_t kMostNodes = std::size_t{1} << 21;

Error bad_structure_member(std::string_view what) {
  return Error(Code::kCorrupt, "structure-file/bad-member",
               fmt::format("{} is missing, of the wrong type, or does not fit the rest", what));
}

Error no_treedef(std::string_view what) {
  return Error(Code::kCorrupt, "structure-file/treedef", std::string(what));
}

/// The members of the file, each of its type.
struct StructureFile {
  std::vector<std::string> keys;  // of all leaves, with the prefix
  std::vector<bool> is_array;     // of all leaves
  std::vector<std::string> arrays;
  Json payload;
  std::string treedef;
  Json extras;
};

Result<std::vector<std::string>> texts_of(const Json& json, std::string_view member) {
  const Json* found = json.find(member);
  if (found == nullptr || found->array() == nullptr) return bad_structure_member(member);
  std::vector<std::string> texts;
  texts.reserve(found->array()->size());
  for (const Json& item : *found->array()) {
    if (item.text() == nullptr) return bad_structure_member(member);
    texts.push_back(*item.text());
  }
  return texts;
}

Result<StructureFile> parse_members(std::string_view text, const std::string& prefix) {
  const auto json =
      parse_json(text, {.bytes = kMaxEformerStructureBytes, .values = kEformerIndexLimits.values});
  if (!json || json->object() == nullptr) {
    return Error(Code::kCorrupt, "structure-file/bad-json",
                 json ? std::string("it is not a JSON object") : json.error().to_string());
  }
  const auto says = [&](std::string_view member, std::string_view expected) {
    const Json* found = json->find(member);
    return found != nullptr && found->text() != nullptr && *found->text() == expected;
  };
  if (!says("format", "pytree-structure") || !says("prefix", prefix))
    return Error(Code::kCorrupt, "structure-file/other-tree", "it describes another tree");
  StructureFile file;
  CAIRN_TRY_ASSIGN(file.keys, texts_of(*json, "leaf_keys_full"));
  CAIRN_TRY_ASSIGN(file.arrays, texts_of(*json, "array_relpaths"));
  const Json* mask = json->find("arr_mask");
  if (mask == nullptr || mask->array() == nullptr) return bad_structure_member("arr_mask");
  for (const Json& item : *mask->array()) {
    if (!item.boolean()) return bad_structure_member("arr_mask");
    file.is_array.push_back(*item.boolean());
  }
  const auto arrays = std::ranges::count(file.is_array, true);
  if (file.is_array.size() != file.keys.size() || arrays != std::ssize(file.arrays))
    return bad_structure_member("arr_mask");
  const Json* payload = json->find("nonarray_payload");
  if (payload == nullptr || payload->object() == nullptr)
    return bad_structure_member("nonarray_payload");
  file.payload = *payload;
  const Json* treedef = json->find("treedef_b64");
  if (treedef == nullptr || treedef->text() == nullptr) return bad_structure_member("treedef_b64");
  file.treedef = *treedef->text();
  if (const Json* extras = json->find("extras"); extras != nullptr && !extras->is_null()) {
    if (extras->object() == nullptr) return bad_structure_member("extras");
    if (!extras->object()->empty()) file.extras = *extras;
  }
  return file;
}

Result<Pickle> decode_pickle(std::string_view base64) {
  CAIRN_TRY_ASSIGN(const std::string bytes, decode_base64(base64));
  return Pickle::parse(bytes);
}

/// JAX's kinds of nodes, as its PyTreeDef numbers them.
enum class NodeKind : std::uint8_t {
  kLeaf,
  kNone,
  kTuple,
  kNamedTuple,
  kList,
  kDict,
  kCustom,
  kDataclass,
};

struct TreeNode {
  NodeKind kind = NodeKind::kLeaf;
  Number data = 0;
  Number made_by = 0;
  Children children;
  std::size_t leaves = 0;
};

/// The nodes of a pickled PyTreeDef: (registry, [(kind, children, data, made by, leaves, nodes)]),
/// children before their parents.
Result<const Pickle::List*> pickled_nodes(const Pickle& pickle) {
  const auto* call = std::get_if<Pickle::Call>(&pickle.root());
  const auto* name = call != nullptr ? std::get_if<Pickle::Name>(&pickle.at(call->what)) : nullptr;
  const auto* state =
      call != nullptr ? std::get_if<Pickle::Tuple>(&pickle.at(call->state)) : nullptr;
  if (name == nullptr || !name->text.ends_with(":PyTreeDef") || state == nullptr ||
      state->items.size() != 2)
    return no_treedef("it holds no PyTreeDef");
  const auto* nodes = std::get_if<Pickle::List>(&pickle.at(state->items[1]));
  if (nodes == nullptr) return no_treedef("it holds no PyTreeDef");
  return nodes;
}

/// Nodes in the order of the pickle: the root is the last.
Result<std::vector<TreeNode>> tree_nodes(const Pickle& pickle, std::size_t leaves) {
  CAIRN_TRY_ASSIGN(const Pickle::List* listed, pickled_nodes(pickle));
  if (listed->items.size() > kMostNodes)
    return no_treedef(fmt::format("its PyTreeDef has more than {} nodes", kMostNodes));
  std::vector<TreeNode> nodes;
  Children open;  // those that have no parent yet
  for (const Number number : listed->items) {
    const auto* fields = std::get_if<Pickle::Tuple>(&pickle.at(number));
    if (fields == nullptr || fields->items.size() != 6)
      return no_treedef("a node of its PyTreeDef makes no sense");
    const auto kind = pickled_int64(pickle.at(fields->items[0]));
    const auto count = pickled_int64(pickle.at(fields->items[1]));
    const bool is_leaf = kind && *kind <= static_cast<int>(NodeKind::kNone);
    if (!kind || *kind < 0 || *kind > static_cast<int>(NodeKind::kDataclass) || !count ||
        *count < 0 || *count > std::ssize(open) || (is_leaf && *count != 0))
      return no_treedef("a node of its PyTreeDef makes no sense");
    TreeNode node{static_cast<NodeKind>(*kind), fields->items[2], fields->items[3], {}, 0};
    node.leaves = node.kind == NodeKind::kLeaf ? 1 : 0;
    const auto first = open.end() - *count;
    node.children.assign(first, open.end());
    for (const std::size_t child : node.children) node.leaves += nodes[child].leaves;
    open.erase(first, open.end());
    open.push_back(nodes.size());
    nodes.push_back(std::move(node));
  }
  if (open.size() != 1 || nodes.back().leaves != leaves) {
    return no_treedef(fmt::format("its PyTreeDef has {} leaves, and {} are named",
                                  open.empty() ? 0 : nodes[open.back()].leaves, leaves));
  }
  return nodes;
}

/// Parts of a leaf's name, without the prefix.
std::vector<std::string> parts_of_key(std::string_view key, const std::string& prefix) {
  std::vector<std::string> parts;
  if (!key.starts_with(prefix) || !key.substr(prefix.size()).starts_with('.')) return parts;
  key.remove_prefix(prefix.size() + 1);
  for (;;) {
    const std::size_t dot = key.find('.');
    parts.push_back(part_of_reference(key.substr(0, dot)));
    if (dot == std::string_view::npos) return parts;
    key.remove_prefix(dot + 1);
  }
}

/// Makes the nodes of tree/structure.h from those of JAX.
class StructureBuilder {
 public:
  StructureBuilder(const StructureFile& file, const std::string& prefix, const Pickle& pickle,
                   const std::vector<Json>& leaves)
      : file_(file), prefix_(prefix), pickle_(pickle), leaves_(leaves), statics_(pickle) {}

  Result<Json> build() {
    CAIRN_TRY_ASSIGN(nodes_, tree_nodes(pickle_, leaves_.size()));
    return build(nodes_.size() - 1, 0, 0);
  }

 private:
  /// `at` parts of the names of the leaves below are those of containers above.
  Result<Json> build(std::size_t number, std::size_t at, int depth) {
    if (depth > kMaxTreeDepth)
      return no_treedef(fmt::format("more than {} containers inside each other", kMaxTreeDepth));
    const TreeNode& node = nodes_[number];
    if (node.kind == NodeKind::kLeaf) return leaves_[next_++];
    if (node.kind == NodeKind::kNone) return Json();
    if (node.kind == NodeKind::kDict) return build_dict(node, at, depth);
    if (node.kind == NodeKind::kList || node.kind == NodeKind::kTuple) {
      Json::Array items;
      for (const std::size_t child : node.children) {
        CAIRN_TRY_ASSIGN(auto item, build(child, at + 1, depth + 1));
        items.push_back(std::move(item));
      }
      return Json(
          Json::Object{{node.kind == NodeKind::kList ? "list" : "tuple", std::move(items)}});
    }
    return build_named(node, at, depth);
  }

  Result<Json> build_dict(const TreeNode& node, std::size_t at, int depth) {
    const auto* keys = std::get_if<Pickle::List>(&pickle_.at(node.data));
    if (keys == nullptr || keys->items.size() != node.children.size())
      return no_treedef("a dict has other keys than children");
    Json::Array pairs;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const Pickle::Item& key = pickle_.at(keys->items[i]);
      const auto* text = std::get_if<std::string>(&key);
      const auto small = pickled_int64(key);
      if (text == nullptr && !small)
        return no_treedef("a dict has keys that are neither texts nor integers of 64 bits");
      if (text != nullptr && text->size() > kMaxKeyPartBytes)
        return no_treedef("a dict has a key that is too long");
      const auto dots = text != nullptr ? std::ranges::count(*text, '.') : 0;
      CAIRN_TRY_ASSIGN(auto child,
                       build(node.children[i], at + 1 + static_cast<std::size_t>(dots), depth + 1));
      pairs.emplace_back(
          Json::Array{text != nullptr ? Json(*text) : Json(*small), std::move(child)});
    }
    return Json(Json::Object{{"dict", std::move(pairs)}});
  }

  /// A container of a class. Its children have the names that the leaves below them have; one
  /// without leaves has its place for a name.
  Result<Json> build_named(const TreeNode& node, std::size_t at, int depth) {
    Json::Array pairs;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      std::string name = std::to_string(i);
      if (nodes_[node.children[i]].leaves > 0) {
        const auto parts = parts_of_key(file_.keys[next_], prefix_);
        if (at < parts.size()) name = parts[at];
      }
      CAIRN_TRY_ASSIGN(auto child, build(node.children[i], at + 1, depth + 1));
      pairs.emplace_back(Json::Array{Json(std::move(name)), std::move(child)});
    }
    const bool named_tuple = node.kind == NodeKind::kNamedTuple;
    const auto* name =
        std::get_if<Pickle::Name>(&pickle_.at(named_tuple ? node.data : node.made_by));
    Json::Object made{{named_tuple ? "namedtuple" : "custom", std::move(pairs)},
                      {"class", name != nullptr ? name->text : ""}};
    const auto statics = named_tuple ? std::nullopt : statics_.text(node.data);
    if (statics) made.emplace_back("static", *statics);
    return Json(std::move(made));
  }

  const StructureFile& file_;
  const std::string& prefix_;
  const Pickle& pickle_;
  const std::vector<Json>& leaves_;
  PickledStatics statics_;
  std::vector<TreeNode> nodes_;
  std::size_t next_ = 0;  // of the leaves
};

Result<Value> payload_value(const Json* payload) {
  if (payload == nullptr || payload->text() == nullptr)
    return bad_structure_member("its place in nonarray_payload");
  CAIRN_TRY_ASSIGN(const Pickle pickle, decode_pickle(*payload->text()));
  return value_of_pickle(pickle);
}

/// Leaves as nodes of a structure. What cannot be read is None, and noted.
std::vector<Json> leaves_of_file(const StructureFile& file, EformerStructure& made) {
  std::vector<const Json*> payload(file.keys.size());
  for (const auto& [name, json] : *file.payload.object()) {
    const auto number = Integer::parse(name);
    const auto index = number ? number->to_uint64() : std::nullopt;
    if (index && *index < payload.size()) payload[*index] = &json;
  }
  std::vector<Json> leaves;
  for (std::size_t i = 0; i < file.keys.size(); ++i) {
    if (file.is_array[i]) {
      leaves.emplace_back("array");
      continue;
    }
    auto value = payload_value(payload[i]);
    auto json = value ? value_to_json(*value) : Result<Json>(value.error());
    if (!json) {
      made.notes.push_back(fmt::format(
          "the value of {} was left out: {}; allow_pickle=True of cairn.load unpickles it",
          file.keys[i], json.error().message()));
    }
    const bool none = !json || std::holds_alternative<std::monostate>(*value);
    leaves.push_back(none ? Json() : Json(Json::Object{{"value", *std::move(json)}}));
  }
  return leaves;
}

/// By the names of the leaves: for where the containers are not known.
void take_values(const StructureFile& file, const std::string& prefix,
                 const std::vector<Json>& leaves, EformerStructure& made) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (file.is_array[i]) continue;
    const Json* json = leaves[i].find("value");
    auto value = json != nullptr ? value_from_json(*json) : Result<Value>(Value());
    if (value) made.values.emplace_back(parts_of_key(file.keys[i], prefix), *std::move(value));
  }
}

}  // namespace

Result<EformerStructure> parse_eformer_structure(std::string_view text, const std::string& prefix) {
  CAIRN_TRY_ASSIGN(const StructureFile file, parse_members(text, prefix));
  EformerStructure made;
  made.arrays = file.arrays;
  made.extras = file.extras;
  const std::vector<Json> leaves = leaves_of_file(file, made);
  const auto built = [&]() -> Result<void> {
    CAIRN_TRY_ASSIGN(const Pickle pickle, decode_pickle(file.treedef));
    CAIRN_TRY_ASSIGN(made.structure, StructureBuilder(file, prefix, pickle, leaves).build());
    CAIRN_TRY_ASSIGN(auto found, structure_leaves(made.structure));
    made.values = std::move(found.values);
    made.paths = std::move(found.arrays);
    return {};
  }();
  if (built) return made;
  made.structure = Json();
  made.notes.push_back(
      fmt::format("the tree is nested dicts: its containers cannot be made out of {}: {}",
                  structure_name(prefix), built.error().message()));
  take_values(file, prefix, leaves, made);
  return made;
}

}  // namespace cairn
