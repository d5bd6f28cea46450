// SPDX-License-Identifier: Apache-2.0
// Python's containers and Cairn's trees.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "cairn/tree/tree.h"

namespace cairn::python {

namespace nb = nanobind;

/// Shares the memory of arrays; what cairn._nodes.describe() calls immutable is lent. Throws
/// `invalid_argument` (python/unsupported-leaf), with the key path of every leaf that cannot be
/// saved and what it is.
Tree to_tree(const nb::handle& object);
/// The same of a template: what has a type and a shape needs no memory.
Tree to_template(const nb::handle& object);
/// The same of a tree whose memory is to be written to.
Tree to_filled(const nb::handle& object);

/// What the reference system needs to load these trees with their containers, of those that have a
/// prefix and that JAX can describe; `SaveInternals::structures` takes it.
std::vector<std::pair<std::string, std::string>> structures_of(
    const std::vector<std::pair<std::string, nb::object>>& trees, const Json& extras);

/// Arrays become what `place(parts, dtype, shape, [(position, numpy array)], sharding)` makes of
/// them, NumPy's where it is None. Named tuples, attribute and custom nodes are made by
/// cairn._rebuild, and `notes` gets a sentence for each class that could not be made.
nb::object from_tree(const Tree& tree, const nb::object& place, std::vector<std::string>& notes);
/// The leaves of a tree that came of to_template() or to_filled(), in the order of the template;
/// cairn._nodes.KEPT for an array that `rank` should hold a part of, but none was read.
nb::list leaves_from_tree(const Tree& tree, const nb::object& place, int rank);
nb::object from_value(const Value& value);

}  // namespace cairn::python
