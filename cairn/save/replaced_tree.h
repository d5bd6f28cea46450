// SPDX-License-Identifier: Apache-2.0
// What a save is about to replace: refused if it is a tree with other leaves, unless
// SaveOptions::overwrite is set. Leaves are compared by key path, arrays and values alike; shapes,
// types, containers and values do not matter. Linear in leaves. Writes nothing, takes no lock and
// waits for no save, so that a save can call it on its way.
#pragma once

#include <vector>

#include "cairn/base/uri.h"
#include "cairn/runtime/runtime.h"
#include "cairn/save/prepare.h"

namespace cairn {

/// Each tree against what its prefix holds in the directory: what is committed there; else what
/// another system's tensorstore_index.json lists, where arrays alone are compared, as it stores
/// nothing else; else, for the layout safetensors, the file or the set of another program that has
/// the name. Attempts do not count, nor do other prefixes. `already_exists` (save/other-tree),
/// naming leaves of both sides, if leaves are known to differ. What cannot be read is no reason to
/// stop a save: that is logged (save/unread-tree).
///
/// REQUIRES: the save's attempt has begun. A commit of somebody else after that is either seen here
/// or refused by Attempt::commit().
Result<void> check_replaced_trees(const std::vector<PreparedTree>& trees, const Uri& directory,
                                  Runtime& runtime);

/// The tree against the file that the save replaces. Fine if it is not there, is empty or holds the
/// same leaves; `already_exists` (save/other-tree) for every other file, safetensors or not. Links
/// and directories are left for the writer to refuse.
Result<void> check_replaced_file(const PreparedTree& tree, const Uri& file, Runtime& runtime);

}  // namespace cairn
