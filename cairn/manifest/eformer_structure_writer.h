// SPDX-License-Identifier: Apache-2.0
// Writes `<prefix>_structure.json`, by which the reference system loads a tree of ours with its
// containers. `eformer_structure.h` reads it.
#pragma once

#include <optional>
#include <string>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// The text of the file; nothing if the tree holds other containers than dicts, lists, tuples and
/// None, or a dict that JAX does not take: one with both integer and text keys.
std::optional<std::string> dump_eformer_structure(const Manifest& manifest);

}  // namespace cairn
