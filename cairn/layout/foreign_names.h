// SPDX-License-Identifier: Apache-2.0
// Names that other systems gave to arrays.
#pragma once

#include <string>
#include <vector>

#include "cairn/tree/key_path.h"

namespace cairn {

/// Key paths of the names: split at '.'; decoded, if every name is one that KeyPath::text() gives.
/// If a leaf would then stand where another has children, each name is one part.
std::vector<KeyPath> paths_of_names(const std::vector<std::string>& names);

}  // namespace cairn
