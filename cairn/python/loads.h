// SPDX-License-Identifier: Apache-2.0
// What all loading calls share: from the arguments of Python to options, and back to trees of
// Python.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "cairn/load/load.h"

namespace cairn::python {

namespace nb = nanobind;

using Parts = std::vector<std::string>;
using Prefix = std::optional<std::string>;

/// Python's LoadRequest.
struct LoadCall {
  LoadOptions options;
  nb::object like = nb::none();
  /// Returns the mesh, or None, and the rules as pairs of a pattern and a spec, or None.
  nb::object onto = nb::none();
  /// Gets [(parts, key, shape)] of the arrays of the tree; `key` is what rules and callbacks see.
  /// Returns a sharding, a spec or None for each.
  nb::object choose = nb::none();
  ShardingTree shardings = {};
  nb::object place = nb::none();  ///< as from_tree()
  bool nested = false;            ///< dicts with texts as keys, whatever was saved
  /// A checkpoint of another system: load nested dicts, with the text of its structure file in the
  /// report, for Python to unpickle.
  bool to_unpickle = false;
};

/// Loads, on another thread; nullopt if there is nothing to load.
using LoadIt = std::function<Result<std::optional<Loaded>>(const LoadOptions& options)>;

/// (tree, metadata, extras, report), the middle two as JSON; or None. With a template, a list of
/// its leaves replaces the tree.
nb::object load_tree(const LoadCall& call, const LoadIt& load_it);

/// The number of the tree, and [(parts of the key that rules see, sharding)] of all its arrays, as
/// load_tree() would place them; reads nothing.
nb::object place_tree(const LoadCall& call, std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace cairn::python
