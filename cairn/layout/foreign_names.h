// SPDX-License-Identifier: Apache-2.0
// Names that other systems gave to arrays.
#pragma once

#include <string>
#include <vector>

#include "cairn/tree/key_path.h"

namespace cairn {

/// Their key paths: split at '.', and decoded if all of them are as
/// KeyPath::text() says them. If a leaf then stood where another has children, each name is one
/// part.
std::vector<KeyPath> paths_of_names(const std::vector<std::string>& names);

}  // namespace cairn
