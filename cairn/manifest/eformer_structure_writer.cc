// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/eformer_structure_writer.h"

#include <algorithm>
#include <utility>

#include "cairn/base/base64.h"
#include "cairn/base/pickle.h"
#include "cairn/base/version.h"
#include "cairn/manifest/names.h"
#include "cairn/tree/key_path.h"
#include "cairn/tree/value.h"

namespace cairn {

namespace {

/// Writes the leaves of a structure and the call that makes its PyTreeDef: JAX's own function with
/// the containers, so that it does not matter how JAX pickles them.
class StructureWriter {
 public:
  explicit StructureWriter(const std::string& prefix)
      : text_(prefix), directory_(prefix_directory(prefix)) {
    treedef_.begin_call("jax.tree_util", "tree_structure");
  }

  bool add(const Json& node) {
    if (node.is_null()) return add_leaf(Value());
    if (node.text() != nullptr) return add_array();
    if (const Json* value = node.find("value")) {
      const auto parsed = value_from_json(*value);
      return parsed && add_leaf(*parsed);
    }
    if (const Json* dict = node.find("dict")) return add_dict(*dict);
    if (const Json* list = node.find("list")) return add_list(*list);
    if (const Json* tuple = node.find("tuple")) return add_tuple(*tuple);
    return false;
  }

  std::string text(const std::string& prefix) && {
    treedef_.end_call();
    return dump_json(Json::Object{
        {"format", "pytree-structure"},
        {"version", kVersion},
        {"backend", "tensorstore"},
        {"prefix", prefix},
        {"treedef_b64", encode_base64(as_bytes(std::move(treedef_).finish()))},
        {"leaf_keys_full", std::move(keys_)},
        {"arr_mask", std::move(is_array_)},
        {"array_keys", std::move(array_keys_)},
        {"array_relpaths", std::move(array_paths_)},
        {"nonarray_payload", std::move(payload_)},
        {"safetensors_file", nullptr},
        {"extras", Json::Object()},
    });
  }

 private:
  bool add_key(bool is_array) {
    treedef_.integer(0);
    keys_.emplace_back(text_);
    is_array_.emplace_back(is_array);
    return true;
  }

  bool add_array() {
    array_keys_.emplace_back(text_);
    array_paths_.emplace_back(directory_);
    return add_key(true);
  }

  bool add_leaf(const Value& value) {
    PickleWriter pickle;
    write_value(value, pickle);
    payload_.emplace_back(std::to_string(keys_.size()),
                          encode_base64(as_bytes(std::move(pickle).finish())));
    return add_key(false);
  }

  bool add_below(const Key& key, const Json& child) {
    const KeyPath part({key.part()});
    const std::size_t text_size = text_.size();
    const std::size_t directory_size = directory_.size();
    text_ += "." + part.text();
    directory_ += "/" + part.directory();
    const bool added = add(child);
    text_.resize(text_size);
    directory_.resize(directory_size);
    return added;
  }

  bool add_dict(const Json& pairs) {
    treedef_.begin_dict();
    bool numbers = false;
    bool texts = false;
    for (const Json& pair : *pairs.array()) {
      const Json& name = (*pair.array())[0];
      if (const auto number = name.integer()) {
        numbers = true;
        treedef_.integer(*number);
      } else {
        texts = true;
        treedef_.text(*name.text());
      }
      const Key key = name.integer() ? Key(*name.integer()) : Key(*name.text());
      if ((numbers && texts) || !add_below(key, (*pair.array())[1])) return false;
    }
    treedef_.end_dict();
    return true;
  }

  bool add_items(const Json& items) {
    std::int64_t index = 0;
    return std::ranges::all_of(*items.array(),
                               [&](const Json& item) { return add_below(Key(index++), item); });
  }

  bool add_list(const Json& items) {
    treedef_.begin_list();
    const bool added = add_items(items);
    treedef_.end_list();
    return added;
  }

  bool add_tuple(const Json& items) {
    treedef_.begin_tuple();
    const bool added = add_items(items);
    treedef_.end_tuple();
    return added;
  }

  static void write_value(const Value& value, PickleWriter& pickle) {
    if (std::holds_alternative<std::monostate>(value)) {
      pickle.none();
    } else if (const auto* boolean = std::get_if<bool>(&value)) {
      pickle.boolean(*boolean);
    } else if (const auto* number = std::get_if<double>(&value)) {
      pickle.number(*number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      pickle.text(*text);
    } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
      pickle.bytes(bytes->data);
    } else if (const auto* complex = std::get_if<std::complex<double>>(&value)) {
      pickle.begin_call("builtins", "complex");
      pickle.number(complex->real());
      pickle.number(complex->imag());
      pickle.end_call();
    } else {
      write_integer(std::get<Integer>(value), pickle);
    }
  }

  static void write_integer(const Integer& integer, PickleWriter& pickle) {
    if (const auto small = integer.to_int64()) return pickle.integer(*small);
    pickle.begin_call("builtins", "int");
    pickle.text(integer.digits());
    pickle.end_call();
  }

  std::string text_;       // key of the node that is added
  std::string directory_;  // and its directory
  PickleWriter treedef_;
  Json::Array keys_;
  Json::Array is_array_;
  Json::Array array_keys_;
  Json::Array array_paths_;
  Json::Object payload_;
};

}  // namespace

std::optional<std::string> dump_eformer_structure(const Manifest& manifest) {
  StructureWriter writer(manifest.prefix);
  if (!writer.add(manifest.structure)) return std::nullopt;
  return std::move(writer).text(manifest.prefix);
}

}  // namespace cairn
