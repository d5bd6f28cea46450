// SPDX-License-Identifier: Apache-2.0
// cairn_tree_probe: one tree a line on stdin, the parts of its leaves' key paths a line on stdout.
//
//   tree := ["dict", [[key, tree], ...]]        in any order
//         | ["list" | "tuple" | "fields", [[key, tree], ...]]
//         | "none" | "leaf"
#include <iostream>
#include <string>

#include "cairn/base/json.h"
#include "cairn/tree/flatten.h"

namespace {

cairn::TreeKind kind_of(const std::string& name) {
  if (name == "dict") return cairn::TreeKind::kDict;
  if (name == "list") return cairn::TreeKind::kList;
  return name == "tuple" ? cairn::TreeKind::kTuple : cairn::TreeKind::kNamedTuple;
}

cairn::Tree read_tree(const cairn::Json& json) {
  if (const std::string* name = json.text()) {
    return *name == "none" ? cairn::Tree::none() : cairn::Tree(cairn::Value());
  }
  cairn::Tree::Children children;
  for (const cairn::Json& pair : *(*json.array())[1].array()) {
    const cairn::Json& key = pair.array()->front();
    children.emplace_back(key.text() ? cairn::Key(*key.text()) : cairn::Key(*key.integer()),
                          read_tree(pair.array()->back()));
  }
  return cairn::Tree::node(kind_of(*json.array()->front().text()), std::move(children));
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto leaves = cairn::flatten(read_tree(*cairn::parse_json(line)));
    if (!leaves) {
      std::cerr << leaves.error().to_string() << '\n';
      return 1;
    }
    cairn::Json::Array paths;
    for (const cairn::NamedLeaf& named : *leaves) {
      cairn::Json::Array parts;
      for (const std::string& part : named.path.parts()) parts.emplace_back(part);
      paths.emplace_back(std::move(parts));
    }
    std::cout << cairn::dump_json(cairn::Json(std::move(paths))) << '\n';
  }
}
