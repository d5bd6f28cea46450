// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/visit.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cairn/tree/child_order.h"

namespace cairn::visit_detail {
namespace {

std::string name_of(const ReadPath& at) {
  Parts parts;
  for (const ReadPath* path = &at; path->above; path = path->above) parts.push_back(path->part);
  std::reverse(parts.begin(), parts.end());
  return place_name(parts);
}

std::string describe(const Tree& tree) {
  const std::size_t size = tree.children().size();
  switch (tree.kind()) {
    case TreeKind::kLeaf:
      if (const auto* array = std::get_if<ShardedArray>(&tree.leaf())) {
        return fmt::format("{}array {} {}", array->whole() ? "" : "sharded ",
                           dtype_name(array->dtype()), to_string(array->shape()));
      }
      return std::string(type_name(std::get<Value>(tree.leaf())));
    case TreeKind::kDict:
      return fmt::format("dict of {}", size);
    case TreeKind::kList:
      return fmt::format("list of {}", size);
    case TreeKind::kTuple:
      return fmt::format("tuple of {}", size);
    case TreeKind::kNone:
      return "None";
    case TreeKind::kNamedTuple:
    case TreeKind::kAttributes:
    case TreeKind::kCustom:
      break;
  }
  return fmt::format("{} with {} members", tree.class_name().empty() ? "struct" : tree.class_name(),
                     size);
}

Error mismatch(const char* reason, std::string message) {
  return {Code::kFailedPrecondition, reason, std::move(message)};
}

bool is_list(const Tree& tree) {
  return tree.kind() == TreeKind::kList || tree.kind() == TreeKind::kTuple;
}

bool has_named_children(const Tree& tree) {
  return !tree.is_leaf() && !is_list(tree) && tree.kind() != TreeKind::kNone;
}

// The key as an index below `count`: 3 or "3".
std::optional<std::size_t> index_of(const Key& key, std::size_t count) {
  const auto integer = Integer::parse(key.part());
  const auto number = integer ? integer->to_uint64() : std::nullopt;
  if (!number || *number >= count) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

std::string list_names(const Tree& tree) {
  constexpr std::size_t kShown = 20;
  std::string names;
  for (std::size_t i = 0; i < std::min(kShown, tree.children().size()); ++i) {
    names += (i == 0 ? "" : ", ") + KeyPath({tree.children()[i].first.part()}).text();
  }
  if (tree.children().size() > kShown) names += ", ...";
  return names.empty() ? "nothing" : names;
}

}  // namespace

Error type_mismatch(const ReadPath& at, std::string_view expected, const Tree& found) {
  return mismatch("tree/type-mismatch",
                  fmt::format("{}: expected {}, found {}", name_of(at), expected, describe(found)));
}

Error out_of_range(const ReadPath& at, std::string_view expected, const Tree& found) {
  const Value* value = leaf_value(found);
  return mismatch("tree/out-of-range",
                  fmt::format("{}: expected {}, found {}", name_of(at), expected,
                              value ? value_to_text(*value).substr(0, 40) : describe(found)));
}

const Value* leaf_value(const Tree& tree) {
  static const Value kNoneValue;
  if (tree.kind() == TreeKind::kNone) return &kNoneValue;
  return tree.is_leaf() ? std::get_if<Value>(&tree.leaf()) : nullptr;
}

Result<const Tree*> find_member(const Tree& tree, const ReadPath& at, std::string_view name) {
  if (!has_named_children(tree)) return type_mismatch(at, "a struct or dict", tree);
  if (const Tree* child = tree.find(Key(name))) return child;
  return mismatch("tree/missing-member", fmt::format("{} has no member '{}'; it has: {}",
                                                     name_of(at), name, list_names(tree)));
}

Result<void> check_members(const Tree& tree, const ReadPath& at,
                           const std::vector<std::string>& names) {
  if (!has_named_children(tree)) return type_mismatch(at, "a struct or dict", tree);
  for (const auto& [key, child] : tree.children()) {
    if (!key.is_number() && std::find(names.begin(), names.end(), key.text()) != names.end()) {
      continue;
    }
    return mismatch("tree/unexpected-member",
                    fmt::format("{} has a member that the struct does not have: {}, {}",
                                name_of(at), name_of(ReadPath{&at, key.part()}), describe(child)));
  }
  return {};
}

Result<std::vector<const Tree*>> read_items(const Tree& tree, const ReadPath& at) {
  const std::size_t count = tree.children().size();
  if (!is_list(tree) && tree.kind() != TreeKind::kDict) return type_mismatch(at, "a list", tree);
  std::vector<const Tree*> items(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [key, child] = tree.children()[i];
    const auto index = is_list(tree) ? i : index_of(key, count);
    if (!index || items[*index]) {
      return type_mismatch(at, fmt::format("a list, or a dict with the keys 0 to {}", count - 1),
                           tree);
    }
    items[*index] = &child;
  }
  return items;
}

Result<void> check_map(const Tree& tree, const ReadPath& at) {
  if (has_named_children(tree)) return {};
  return type_mismatch(at, "a dict", tree);
}

Result<void> Member<Array>::read(const Tree& tree, const ReadPath& at, Array& out) {
  const auto* found = tree.is_leaf() ? std::get_if<ShardedArray>(&tree.leaf()) : nullptr;
  if (!found || !found->whole()) return type_mismatch(at, "a whole array", tree);
  out = found->array();
  return {};
}

Result<void> Member<ShardedArray>::read(const Tree& tree, const ReadPath& at, ShardedArray& out) {
  const auto* found = tree.is_leaf() ? std::get_if<ShardedArray>(&tree.leaf()) : nullptr;
  if (!found) return type_mismatch(at, "an array", tree);
  out = *found;
  return {};
}

Result<void> Member<Value>::read(const Tree& tree, const ReadPath& at, Value& out) {
  const Value* found = leaf_value(tree);
  if (!found) return type_mismatch(at, "a value", tree);
  out = *found;
  return {};
}

Result<void> Member<float>::read(const Tree& tree, const ReadPath& at, float& out) {
  CAIRN_TRY_ASSIGN(const double* found, read_value<double>(tree, at, "float"));
  const bool fits = !std::isfinite(*found) || std::abs(*found) <= std::numeric_limits<float>::max();
  const float narrow = fits ? static_cast<float>(*found) : 0.0F;
  if (!std::isnan(*found) && static_cast<double>(narrow) != *found) {
    return out_of_range(at, "a number that a 32-bit float holds exactly", tree);
  }
  out = narrow;
  return {};
}

}  // namespace cairn::visit_detail
