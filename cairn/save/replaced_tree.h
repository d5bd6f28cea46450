// SPDX-License-Identifier: Apache-2.0
// Refuses to replace a tree with other leaves, unless SaveOptions::overwrite is set. Leaves are
// compared by key path, arrays and values alike; shapes, types, containers and values do not
// matter. Linear in leaves. Writes nothing, takes no lock and waits for no save, so a save can call
// it at any point.
#pragma once

#include <vector>

#include "cairn/base/uri.h"
#include "cairn/runtime/runtime.h"
#include "cairn/save/prepare.h"

namespace cairn {

/// Compares each tree with the leaves of its prefix in the directory. These are what is committed
/// there; else what the tensorstore_index.json of another system lists (compared by arrays alone,
/// because it stores nothing else); else, for the layout safetensors, the file or set of files of
/// that name. Ignores attempts and other prefixes. `already_exists` (save/other-tree), naming
/// leaves of both sides, if leaves are known to differ. What cannot be read does not stop the save:
/// it is logged (save/unread-tree).
///
/// REQUIRES: the attempt of the save has begun. Attempt::commit() refuses a later commit of
/// somebody else that was not seen here.
Result<void> check_replaced_trees(const std::vector<PreparedTree>& trees, const Uri& directory,
                                  Runtime& runtime);

/// Compares the tree with the file that the save replaces. Success if there is no file, or it is
/// empty or holds the same leaves; `already_exists` (save/other-tree) for every other file,
/// safetensors or not. The writer refuses links and directories itself.
Result<void> check_replaced_file(const PreparedTree& tree, const Uri& file, Runtime& runtime);

}  // namespace cairn
