// SPDX-License-Identifier: Apache-2.0
// Whatever structure is accepted makes a tree whose structure is the same again; whatever key path
// is accepted is one to one with its text and its directory.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cairn/tree/structure.h"

namespace {

using cairn::KeyPath;

void check_path(const KeyPath& path) {
  const auto from_text = KeyPath::parse(path.text());
  const auto from_directory = KeyPath::parse_directory(path.directory());
  if (!from_text || *from_text != path) __builtin_trap();
  if (!from_directory || *from_directory != path) __builtin_trap();
}

void check_structure(const cairn::Json& json) {
  const auto leaves = cairn::structure_leaves(json);
  const std::size_t count = leaves ? leaves->arrays.size() : 0;
  const cairn::ShardedArray blank{cairn::Array()};
  const auto tree =
      cairn::tree_from_structure(json, std::vector<cairn::ShardedArray>(count, blank));
  if (leaves.has_value() != tree.has_value()) __builtin_trap();
  if (!leaves) {
    if (leaves.error().code() != cairn::Code::kCorrupt) __builtin_trap();
    if (leaves.error().reason() != tree.error().reason()) __builtin_trap();
    return;
  }
  for (const KeyPath& path : leaves->arrays) check_path(path);
  const auto again = cairn::structure_to_json(*tree);
  if (!again) {
    if (again.error().reason() == "keypath/part-too-long") return;
    __builtin_trap();
  }
  const auto tree_again =
      cairn::tree_from_structure(*again, std::vector<cairn::ShardedArray>(count, blank));
  if (!tree_again || *cairn::structure_to_json(*tree_again) != *again) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto path = KeyPath::parse(text);
  if (path) check_path(*path);
  const auto directory = KeyPath::parse_directory(text);
  if (directory) check_path(*directory);
  const auto json = cairn::parse_json(text, {.depth = cairn::kMaxStructureJsonDepth});
  if (json) check_structure(*json);
  return 0;
}
