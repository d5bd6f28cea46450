// SPDX-License-Identifier: Apache-2.0
// The order in which flatten() and structures visit the children of a node, and the keys that they
// refuse.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cairn/tree/tree.h"

namespace cairn {

/// Key path of the current node of a walk.
using Parts = std::vector<std::string>;

/// Indices into children(): dicts sorted by key, others as they stand. Errors as flatten().
Result<std::vector<std::size_t>> child_order(const Tree& node, const Parts& above);

/// The part of child `index` in the key path.
std::string child_part(const Tree& node, std::size_t index);

/// "'a.b'" or "the root", for messages.
std::string place_name(const Parts& parts);

/// The error for keys that find_collision() found below `above`.
std::string collision_message(const std::pair<Key, Key>& keys, const Parts& above);

}  // namespace cairn
