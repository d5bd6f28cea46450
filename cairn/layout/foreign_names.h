// SPDX-License-Identifier: Apache-2.0
// Names that other systems gave to arrays.
#pragma once

#include <string>
#include <vector>

#include "cairn/tree/key_path.h"

namespace cairn {

/// Key paths of the names: split at '.', and decoded if every name looks like output of
/// KeyPath::text(). If that made a leaf the parent of another, each name becomes one part.
std::vector<KeyPath> paths_of_names(const std::vector<std::string>& names);

}  // namespace cairn
