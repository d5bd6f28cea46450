// SPDX-License-Identifier: Apache-2.0
// Converts containers of Python to trees and back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "cairn/tree/tree.h"

namespace cairn::python {

namespace nb = nanobind;

/// Shares the memory of arrays; arrays that cairn._nodes.describe() calls immutable are lent.
/// Throws `invalid_argument` (python/unsupported-leaf) with every leaf that cannot be saved: its
/// key path and its type.
Tree to_tree(const nb::handle& object);
/// The same for a template: leaves with a type and a shape need no memory.
Tree to_template(const nb::handle& object);
/// The same for a tree whose memory is overwritten.
Tree to_filled(const nb::handle& object);

/// What the reference system needs to load these trees with their containers, of those that have a
/// prefix and that JAX can describe; `SaveInternals::structures` takes it.
std::vector<std::pair<std::string, std::string>> structures_of(
    const std::vector<std::pair<std::string, nb::object>>& trees, const Json& extras);

/// `place(parts, dtype, shape, [(position, numpy array)], sharding)` makes each array; if it is
/// None, they are those of NumPy. cairn._rebuild makes named tuples, attribute and custom nodes;
/// `notes` gets a sentence for each class that could not be made.
nb::object from_tree(const Tree& tree, const nb::object& place, std::vector<std::string>& notes);
/// The leaves of a tree made from to_template() or to_filled(), in the order of the template;
/// cairn._nodes.KEPT for an array whose part of `rank` was not read.
nb::list leaves_from_tree(const Tree& tree, const nb::object& place, int rank);
nb::object from_value(const Value& value);

}  // namespace cairn::python
