// SPDX-License-Identifier: Apache-2.0
// A C++ struct as a tree. The user writes one function a struct, found by argument lookup:
//
//   struct Layer { cairn::Array kernel, bias; };
//   template <typename Visitor> void cairn_visit(Visitor& v, Layer& layer) {
//     v("kernel", layer.kernel);
//     v("bias", layer.bias);
//   }
//   cairn::Tree tree = cairn::to_tree(layer);
//   CAIRN_TRY(cairn::from_tree(tree, layer));
//
// Members may be Array, ShardedArray, bool, integers, float, double, std::complex<double>,
// std::string, Bytes, Value, std::vector and std::map<std::string, ...> of these, and structs with
// a cairn_visit of their own. The function names the members and does nothing else: to_tree() calls
// it with a const struct cast to what the function takes.
#pragma once

#include <concepts>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/tree/tree.h"

namespace cairn {
namespace visit_detail {

// Path of the value being read, for messages. Lives on the stack of the read.
struct ReadPath {
  const ReadPath* above = nullptr;
  std::string part;
};

Error type_mismatch(const ReadPath& at, std::string_view expected, const Tree& found);
Error out_of_range(const ReadPath& at, std::string_view expected, const Tree& found);

// The value of a leaf, or null. JAX's None counts as the value None.
const Value* leaf_value(const Tree& tree);
// Child of anything that can be a struct.
Result<const Tree*> find_member(const Tree& tree, const ReadPath& at, std::string_view name);
// Refuses children beyond `names`.
Result<void> check_members(const Tree& tree, const ReadPath& at,
                           const std::vector<std::string>& names);
// Items of a list or tuple, or of a dict with the keys 0, 1, ... as numbers or text, in their
// order.
Result<std::vector<const Tree*>> read_items(const Tree& tree, const ReadPath& at);
// Refuses what cannot be a map.
Result<void> check_map(const Tree& tree, const ReadPath& at);

template <typename T>
Result<const T*> read_value(const Tree& tree, const ReadPath& at, std::string_view expected) {
  const Value* value = leaf_value(tree);
  const T* found = value ? std::get_if<T>(value) : nullptr;
  if (!found) return type_mismatch(at, expected, tree);
  return found;
}

// How one type of member becomes a tree, and back. A type that has no specialisation is not
// supported.
template <typename T>
struct Member;

template <>
struct Member<Array> {
  static Tree write(const Array& array) { return Tree(array); }
  static Result<void> read(const Tree& tree, const ReadPath& at, Array& out);
};

template <>
struct Member<ShardedArray> {
  static Tree write(const ShardedArray& array) { return Tree(array); }
  static Result<void> read(const Tree& tree, const ReadPath& at, ShardedArray& out);
};

template <>
struct Member<Value> {
  static Tree write(const Value& value) { return Tree(value); }
  static Result<void> read(const Tree& tree, const ReadPath& at, Value& out);
};

template <typename T, typename... Others>
concept OneOf = (std::same_as<T, Others> || ...);

template <typename T>
concept PlainValue = OneOf<T, bool, double, std::complex<double>, std::string, Bytes>;

template <PlainValue T>
struct Member<T> {
  static Tree write(const T& value) { return Tree(Value(value)); }
  static Result<void> read(const Tree& tree, const ReadPath& at, T& out) {
    CAIRN_TRY_ASSIGN(const T* value, read_value<T>(tree, at, type_name(Value(T()))));
    out = *value;
    return {};
  }
};

template <>
struct Member<float> {
  static Tree write(float value) { return Tree(Value(double{value})); }
  static Result<void> read(const Tree& tree, const ReadPath& at, float& out);
};

template <typename T>
concept WholeNumber =
    std::integral<T> && !OneOf<T, bool, char, wchar_t, char8_t, char16_t, char32_t>;

template <WholeNumber T>
struct Member<T> {
  static Tree write(T value) { return Tree(Value(Integer(value))); }
  static Result<void> read(const Tree& tree, const ReadPath& at, T& out) {
    CAIRN_TRY_ASSIGN(const Integer* integer, read_value<Integer>(tree, at, "int"));
    const auto number = [integer] {
      if constexpr (std::signed_integral<T>) return integer->to_int64();
      if constexpr (std::unsigned_integral<T>) return integer->to_uint64();
    }();
    if (!number || !std::in_range<T>(*number)) {
      using Limits = std::numeric_limits<T>;
      const std::string range =
          std::to_string(Limits::min()) + " to " + std::to_string(Limits::max());
      return out_of_range(at, "an integer from " + range, tree);
    }
    out = static_cast<T>(*number);
    return {};
  }
};

template <typename T>
T blank() {
  if constexpr (std::same_as<T, ShardedArray>) {
    return ShardedArray(Array());
  } else {
    return T();
  }
}

template <typename T>
struct Member<std::vector<T>> {
  static Tree write(const std::vector<T>& items) {
    std::vector<Tree> trees;
    trees.reserve(items.size());
    for (const auto& item : items) trees.push_back(Member<T>::write(item));
    return Tree::list(std::move(trees));
  }
  static Result<void> read(const Tree& tree, const ReadPath& at, std::vector<T>& out) {
    CAIRN_TRY_ASSIGN(const std::vector<const Tree*> trees, read_items(tree, at));
    std::vector<T> items;
    items.reserve(trees.size());
    for (const Tree* child : trees) {
      T item = blank<T>();
      CAIRN_TRY(Member<T>::read(*child, ReadPath{&at, std::to_string(items.size())}, item));
      items.push_back(std::move(item));
    }
    out = std::move(items);
    return {};
  }
};

template <typename T>
struct Member<std::map<std::string, T>> {
  static Tree write(const std::map<std::string, T>& items) {
    Tree::Children children;
    for (const auto& [key, item] : items) children.emplace_back(key, Member<T>::write(item));
    return Tree::dict(std::move(children));
  }
  static Result<void> read(const Tree& tree, const ReadPath& at, std::map<std::string, T>& out) {
    CAIRN_TRY(check_map(tree, at));
    std::map<std::string, T> items;
    for (const auto& [key, child] : tree.children()) {
      T item = blank<T>();
      CAIRN_TRY(Member<T>::read(child, ReadPath{&at, key.part()}, item));
      items.insert_or_assign(key.part(), std::move(item));
    }
    out = std::move(items);
    return {};
  }
};

struct Writer {
  Tree::Children children;

  template <typename T>
  void operator()(std::string_view name, const T& member) {
    children.emplace_back(name, Member<T>::write(member));
  }
};

struct Reader {
  const Tree& tree;
  const ReadPath& at;
  std::vector<std::string> names;
  Result<void> result;

  template <typename T>
  void operator()(std::string_view name, T& member) {
    if (result) result = read(name, member);
  }

  template <typename T>
  Result<void> read(std::string_view name, T& member) {
    CAIRN_TRY_ASSIGN(const Tree* child, find_member(tree, at, name));
    names.emplace_back(name);
    return Member<T>::read(*child, ReadPath{&at, names.back()}, member);
  }
};

template <typename T>
concept Visitable = requires(Writer writer, T& object) { cairn_visit(writer, object); };

template <Visitable T>
struct Member<T> {
  static Tree write(const T& object) {
    Writer writer;
    cairn_visit(writer, const_cast<T&>(object));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    return Tree::attributes("", std::move(writer.children));
  }
  static Result<void> read(const Tree& tree, const ReadPath& at, T& out) {
    Reader reader{tree, at, {}, {}};
    cairn_visit(reader, out);
    CAIRN_TRY(std::move(reader.result));
    return check_members(tree, at, reader.names);
  }
};

}  // namespace visit_detail

/// The struct (or vector, map, ...) as a tree: structs become attribute nodes, vectors lists, maps
/// dicts.
template <typename T>
Tree to_tree(const T& object) {
  return visit_detail::Member<T>::write(object);
}

/// Fills the struct from a tree. Structs also read dicts, and vectors also read dicts with the keys
/// 0, 1, ..., the form of a checkpoint without structure. `failed_precondition`, with the key path
/// and what was expected and found: tree/missing-member, tree/unexpected-member,
/// tree/type-mismatch, tree/out-of-range (an integer outside the range of the member, a double
/// outside that of a float). After an error the members before the named one have been read, the
/// others have not.
template <typename T>
Result<void> from_tree(const Tree& tree, T& object) {
  return visit_detail::Member<T>::read(tree, visit_detail::ReadPath{}, object);
}

}  // namespace cairn
