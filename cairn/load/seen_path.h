// SPDX-License-Identifier: Apache-2.0
// Key paths as rules, shardings and callbacks of a load see them.
#pragma once

#include "cairn/load/load_options.h"

namespace cairn {

/// The path of an array without the prefix, or with it if `keys_with_prefix`; the prefix is the
/// name of the tree or, in a checkpoint of another system, the first part of its paths. A tree that
/// is a single leaf is seen by its name.
KeyPath seen_path(const OpenedPrefix& prefix, const KeyPath& path, const LoadOptions& options);

}  // namespace cairn
