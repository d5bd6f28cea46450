// SPDX-License-Identifier: Apache-2.0
// Writes `<prefix>_structure.json`, with which the reference system loads our tree with its
// containers. `eformer_structure.h` reads it.
#pragma once

#include <optional>
#include <string>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// The text of the file; nullopt if the tree has containers other than dicts, lists, tuples and
/// None, or a dict that JAX refuses: one with both integer and text keys.
std::optional<std::string> dump_eformer_structure(const Manifest& manifest);

}  // namespace cairn
