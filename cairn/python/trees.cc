// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/trees.h"

#include <complex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/failure.h"
#include "cairn/python/shardings.h"
#include "cairn/tree/flatten.h"

namespace cairn::python {

namespace {

std::string text_of(const nb::handle& object) { return nb::cast<std::string>(nb::str(object)); }

/// Only such a type itself: a class made from it may mean something else.
template <typename T>
bool is_exactly(const nb::handle& object, const T& type) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == reinterpret_cast<PyObject*>(type);
}

/// Nothing for what UTF-8 cannot hold: half of a surrogate pair.
std::optional<std::string> utf8_of(const nb::handle& text) {
  Py_ssize_t size = 0;
  const char* const first = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (first == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string(first, static_cast<std::size_t>(size));
}

/// What a tree is for.
struct Purpose {
  const char* describe;  // the function of cairn._nodes
  const char* complaint;
  bool outline;  // memory is not needed
  bool fill;     // memory is written to
};
constexpr Purpose kToSave{"describe", "what cannot be saved", false, false};
constexpr Purpose kToExpect{"describe_template", "what no leaf of a template can be", true, false};
constexpr Purpose kToFill{"describe_out", "what cannot be filled", false, true};

void check_depth(std::size_t levels) {
  if (levels <= static_cast<std::size_t>(kMaxTreeDepth)) return;
  throw Failure(Error(Code::kInvalidArgument, "tree/too-deep",
                      fmt::format("more than {} containers inside each other; does one contain "
                                  "itself?",
                                  kMaxTreeDepth)));
}

[[noreturn]] void refuse_leaves(const std::string& sentence) {
  throw Failure(Error(Code::kInvalidArgument, "python/unsupported-leaf", sentence));
}

/// Names of leaves of a file.
void check_distinct(const std::vector<std::string>& names) {
  const std::vector<Key> keys(names.begin(), names.end());
  std::vector<const Key*> pointers;
  pointers.reserve(keys.size());
  for (const Key& key : keys) pointers.push_back(&key);
  const auto twice = find_collision(std::move(pointers));
  if (!twice) return;
  throw Failure(
      Error(Code::kInvalidArgument, "keypath/collision",
            fmt::format("several leaves have one name in the file: {}", twice->first.text())));
}

class Packer {
 public:
  explicit Packer(const Purpose& purpose)
      : purpose_(purpose),
        ndarray_(nb::module_::import_("numpy").attr("ndarray")),
        describe_(nb::module_::import_("cairn._nodes").attr(purpose.describe)) {}

  Tree pack(const nb::handle& object) {
    check_depth(parts_.size());
    if (object.is_none()) return Tree::none();
    if (is_exactly(object, &PyDict_Type)) return pack_dict(object);
    if (is_exactly(object, &PyList_Type)) return Tree::list(pack_items(object));
    if (is_exactly(object, &PyTuple_Type)) return Tree::tuple(pack_items(object));
    if (is_exactly(object, ndarray_.ptr())) return pack_array(object, object, false);
    if (auto value = pack_value(object)) return *std::move(value);
    return pack_other(object);
  }

  /// Throws if there was anything that cannot be saved.
  void check() const {
    if (problems_.empty()) return;
    refuse_leaves(fmt::format("{}: {}", purpose_.complaint, fmt::join(problems_, "; ")));
  }

 private:
  std::string here() const { return parts_.empty() ? "the tree itself" : KeyPath(parts_).text(); }

  Tree refuse(const std::string& why) {
    problems_.push_back(here() + " " + why);
    return Tree::none();
  }

  Tree pack_below(std::string part, const nb::handle& object) {
    parts_.push_back(std::move(part));
    Tree tree = pack(object);
    parts_.pop_back();
    return tree;
  }

  std::optional<Key> key_of(const nb::handle& key) {
    if (is_exactly(key, &PyLong_Type)) {
      std::int64_t number = 0;
      if (nb::try_cast(key, number)) return Key(number);
    }
    if (is_exactly(key, &PyUnicode_Type)) {
      if (auto text = utf8_of(key)) return Key(*std::move(text));
    }
    refuse(fmt::format("has the key {}; keys must be UTF-8 text or 64-bit integers",
                       nb::cast<std::string>(nb::repr(key))));
    return std::nullopt;
  }

  Tree pack_dict(const nb::handle& object) {
    Tree::Children children;
    for (const auto [name, value] : nb::borrow<nb::dict>(object)) {
      const auto key = key_of(name);
      if (key) children.emplace_back(*key, pack_below(key->part(), value));
    }
    return Tree::dict(std::move(children));
  }

  std::vector<Tree> pack_items(const nb::handle& object) {
    std::vector<Tree> items;
    for (const nb::handle item : object)
      items.push_back(pack_below(std::to_string(items.size()), item));
    return items;
  }

  Tree pack_integer(const nb::handle& object) {
    try {
      return Tree(Value(value_of(Integer::parse(text_of(object)))));
    } catch (const nb::python_error&) {
      return refuse("is an integer with more digits than Python writes");
    }
  }

  Tree pack_text(const nb::handle& object) {
    auto text = utf8_of(object);
    return text ? Tree(Value(*std::move(text))) : refuse("is a text that UTF-8 cannot encode");
  }

  std::optional<Tree> pack_value(const nb::handle& object) {
    PyObject* const it = object.ptr();
    if (PyBool_Check(it)) return Tree(Value(it == Py_True));
    if (is_exactly(object, &PyLong_Type)) return pack_integer(object);
    if (is_exactly(object, &PyFloat_Type)) return Tree(Value(PyFloat_AsDouble(it)));
    if (is_exactly(object, &PyComplex_Type))
      return Tree(Value(nb::cast<std::complex<double>>(object)));
    if (is_exactly(object, &PyUnicode_Type)) return pack_text(object);
    if (is_exactly(object, &PyBytes_Type)) {
      const auto bytes = nb::borrow<nb::bytes>(object);
      return Tree(Value(Bytes{std::string(bytes.c_str(), bytes.size())}));
    }
    return std::nullopt;
  }

  /// `owner` is what the caller gave; `array` the numpy.ndarray of it.
  Tree pack_array(const nb::handle& owner, const nb::handle& array, bool lend) {
    const nb::object dtype = array.attr("dtype");
    const auto known = dtype_of(dtype);
    if (!known) {
      return refuse(fmt::format("is an array of {}: {}", text_of(dtype), type_of(owner)));
    }
    if (purpose_.outline) return Tree(outline(*known, nb::cast<Shape>(array.attr("shape")), {}));
    if (purpose_.fill) lend = !nb::cast<bool>(array.attr("flags").attr("writeable"));
    if (nb::cast<bool>(dtype.attr("isnative"))) return Tree(share_numpy(array, *known, lend));
    if (purpose_.fill) return refuse("is an array of a byte order that is not the machine's");
    const nb::object native = array.attr("astype")(dtype.attr("newbyteorder")("="));
    return Tree(share_numpy(native, *known, true));
  }

  static std::string type_of(const nb::handle& object) {
    const nb::handle type = object.type();
    return text_of(type.attr("__module__")) + "." + text_of(type.attr("__qualname__"));
  }

  /// ("memory", dtype, shape, strides, address, owner, lend).
  Tree pack_memory(const nb::object& described) {
    const auto name = nb::cast<std::string>(described[1]);
    const auto dtype = parse_dtype(name);
    if (!dtype) return refuse("is a tensor of " + name);
    const Layout layout{nb::cast<Shape>(described[2]), nb::cast<Strides>(described[3]),
                        nb::cast<std::uintptr_t>(described[4])};
    return Tree(
        share_memory(nb::object(described[5]), *dtype, layout, nb::cast<bool>(described[6])));
  }

  /// Whatever describe() knows: ("array", numpy array, lend), ("shards", dtype, shape, sharding,
  /// [(position, numpy array, lend)]), ("outline", dtype, shape, sharding), ("memory", ...),
  /// ("problem", what it is) or (kind, class name, [(key, child)], static part).
  Tree pack_other(const nb::handle& object) {
    const nb::object described = describe_(object);
    if (described.is_none()) return refuse("is a " + type_of(object));
    const auto kind = nb::cast<std::string>(described[0]);
    if (kind == "problem") return refuse(nb::cast<std::string>(described[1]));
    if (kind == "memory") return pack_memory(described);
    if (kind == "array")
      return pack_array(object, nb::object(described[1]), nb::cast<bool>(described[2]));
    if (kind == "shards" || kind == "outline") {
      try {
        const auto dtype = nb::cast<std::string>(described[1]);
        const auto shape = nb::cast<Shape>(described[2]);
        const auto sharding = nb::cast<Sharding>(described[3]);
        return kind == "outline" ? Tree(outline(known_dtype(dtype), shape, sharding))
                                 : Tree(share_shards(dtype, shape, sharding, described[4]));
      } catch (const Failure& failure) {
        return refuse("is wrong: " + failure.error().to_string());
      }
    }
    Tree::Children children;
    for (const nb::handle child : nb::object(described[2])) {
      const auto key = key_of(child[0]);
      if (key) children.emplace_back(*key, pack_below(key->part(), nb::object(child[1])));
    }
    return Tree::node(kind_of(kind), std::move(children), nb::cast<std::string>(described[1]),
                      nb::cast<std::string>(described[3]));
  }

  static TreeKind kind_of(const std::string& name) {
    if (name == "dict") return TreeKind::kDict;
    if (name == "list") return TreeKind::kList;
    if (name == "tuple") return TreeKind::kTuple;
    if (name == "named_tuple") return TreeKind::kNamedTuple;
    return name == "attributes" ? TreeKind::kAttributes : TreeKind::kCustom;
  }

  const Purpose& purpose_;
  nb::object ndarray_;
  nb::object describe_;
  std::vector<std::string> parts_;
  std::vector<std::string> problems_;
};

struct ToPython {
  nb::object operator()(std::monostate) const { return nb::none(); }
  nb::object operator()(bool value) const { return nb::bool_(value); }
  nb::object operator()(const Integer& value) const {
    return nb::steal(PyLong_FromString(value.digits().c_str(), nullptr, 10));
  }
  nb::object operator()(double value) const { return nb::float_(value); }
  nb::object operator()(const std::complex<double>& value) const { return nb::cast(value); }
  nb::object operator()(const std::string& value) const {
    return nb::str(value.data(), value.size());
  }
  nb::object operator()(const Bytes& value) const {
    return nb::bytes(value.data.data(), value.data.size());
  }
};

nb::object to_key(const Key& key) {
  if (key.is_number()) return nb::int_(key.number());
  return nb::str(key.text().data(), key.text().size());
}

const char* rebuilt_kind(TreeKind kind) {
  if (kind == TreeKind::kNamedTuple) return "named_tuple";
  return kind == TreeKind::kAttributes ? "attributes" : "custom";
}

class Unpacker {
 public:
  explicit Unpacker(nb::object place)
      : ndarray_(nb::module_::import_("numpy").attr("ndarray")),
        rebuilder_(nb::module_::import_("cairn._rebuild").attr("Rebuilder")()),
        place_(std::move(place)) {}

  nb::object unpack(const Tree& tree) {
    switch (tree.kind()) {
      case TreeKind::kLeaf:
        return unpack_leaf(tree.leaf());
      case TreeKind::kNone:
        return nb::none();
      case TreeKind::kDict:
        return dict_of(tree);
      case TreeKind::kList:
        return items_of(tree);
      case TreeKind::kTuple:
        return nb::tuple(items_of(tree));
      default:
        return rebuilder_.attr("rebuild")(rebuilt_kind(tree.kind()), tree.class_name().c_str(),
                                          pairs_of(tree), tree.statics().c_str(), parts_);
    }
  }

  nb::list leaves(const Tree& tree, int rank) {
    nb::list found;
    const nb::object kept = nb::module_::import_("cairn._nodes").attr("KEPT");
    const auto add = [&](const auto& self, const Tree& below) -> void {
      if (below.is_leaf()) {
        found.append(is_kept(below.leaf(), rank) ? kept : unpack_leaf(below.leaf()));
        return;
      }
      for (const auto& [key, child] : below.children()) {
        parts_.push_back(key.part());
        self(self, child);
        parts_.pop_back();
      }
    };
    add(add, tree);
    return found;
  }

  nb::object notes() const { return rebuilder_.attr("notes")(); }

 private:
  nb::object below(const Key& key, const Tree& child) {
    parts_.push_back(key.part());
    nb::object object = unpack(child);
    parts_.pop_back();
    return object;
  }

  nb::dict dict_of(const Tree& tree) {
    nb::dict dict;
    for (const auto& [key, child] : tree.children()) dict[to_key(key)] = below(key, child);
    return dict;
  }

  nb::list items_of(const Tree& tree) {
    nb::list items;
    for (const auto& [key, child] : tree.children()) items.append(below(key, child));
    return items;
  }

  nb::list pairs_of(const Tree& tree) {
    nb::list pairs;
    for (const auto& [key, child] : tree.children())
      pairs.append(nb::make_tuple(to_key(key), below(key, child)));
    return pairs;
  }

  nb::object unpack_leaf(const Leaf& leaf) {
    if (const auto* value = std::get_if<Value>(&leaf)) return from_value(*value);
    const auto& array = std::get<ShardedArray>(leaf);
    if (place_.is_none()) return to_numpy(array.array());
    const std::string dtype(dtype_name(array.dtype()));
    nb::object placed = place_(parts_, dtype, nb::tuple(nb::cast(array.shape())),
                               shards_in_numpy(array), nb::cast(array.sharding()));
    if (is_exactly(placed, ndarray_.ptr()) &&
        nb::cast<std::string>(placed.attr("dtype").attr("kind")) == "V") {
      nb::module_::import_("cairn._dtypes").attr("numpy_dtype")(dtype);  // says what is missing
    }
    return placed;
  }

  /// Nothing was read for it, although this rank has a part of it.
  static bool is_kept(const Leaf& leaf, int rank) {
    const auto* array = std::get_if<ShardedArray>(&leaf);
    if (array == nullptr || !array->shards().empty()) return false;
    return array->sharding() == Sharding() ||
           !array->sharding().holdings(array->shape(), rank).empty();
  }

  nb::object ndarray_;
  nb::object rebuilder_;
  nb::object place_;
  std::vector<std::string> parts_;
};

Tree pack_whole(const nb::handle& object, const Purpose& purpose) {
  Packer packer(purpose);
  Tree tree = packer.pack(object);
  packer.check();
  return tree;
}

}  // namespace

Tree to_tree(const nb::handle& object) { return pack_whole(object, kToSave); }
Tree to_template(const nb::handle& object) { return pack_whole(object, kToExpect); }
Tree to_filled(const nb::handle& object) { return pack_whole(object, kToFill); }

std::vector<std::pair<std::string, std::string>> structures_of(
    const std::vector<std::pair<std::string, nb::object>>& trees, const Json& extras) {
  const std::string beside = extras.is_null() ? "" : dump_json(extras);
  std::vector<std::pair<std::string, std::string>> structures;
  for (const auto& [prefix, tree] : trees) {
    if (prefix.empty()) continue;
    const nb::object text =
        nb::module_::import_("cairn._treedefs").attr("structure_text")(prefix, tree, beside);
    if (!text.is_none()) structures.emplace_back(prefix, nb::cast<std::string>(text));
  }
  return structures;
}

nb::object from_value(const Value& value) { return std::visit(ToPython{}, value); }

nb::object from_tree(const Tree& tree, const nb::object& place, std::vector<std::string>& notes) {
  Unpacker unpacker(place);
  nb::object made = unpacker.unpack(tree);
  for (const nb::handle note : unpacker.notes()) notes.push_back(nb::cast<std::string>(note));
  return made;
}

nb::list leaves_from_tree(const Tree& tree, const nb::object& place, int rank) {
  return Unpacker(place).leaves(tree, rank);
}

void bind_trees(nb::module_& module) {
  module.def("check_depth", &check_depth, nb::arg("levels"));
  module.def("check_distinct", &check_distinct, nb::arg("names"));
  module.def("refuse_leaves", &refuse_leaves, nb::arg("sentence"));
}

}  // namespace cairn::python
