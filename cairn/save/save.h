// SPDX-License-Identifier: Apache-2.0
// Saves trees as one checkpoint: one attempt, one decision. `load/load.h` brings them back.
#pragma once

#include <string>
#include <vector>

#include "cairn/runtime/runtime.h"
#include "cairn/save/save_options.h"

namespace cairn {

struct SaveInternals;

/// Blocks until the checkpoint is durable and visible. A prefix that is there is replaced whole if
/// it has the same leaves, or if options.overwrite is set; others and foreign files stay. A path
/// that ends in ".safetensors" is one bare file and takes one tree (`invalid_argument`,
/// save/one-tree); what is no safetensors file is replaced with options.overwrite alone.
/// An error but that of `options.committed` means that nothing visible changed. It names the leaf
/// and the path.
///
/// With a coordinator every rank makes the same call with its own memory of the same trees: each
/// distinct box is written once, by one of the ranks that hold it; arrays that are not sharded, by
/// rank 0; values must be equal on all ranks; metadata and extras are rank 0's alone. All ranks
/// succeed, or all get one error, which names the rank and what it was doing: `failed_precondition`
/// (save/ranks-disagree) in it if trees, step or options differ, `deadline_exceeded` (ranks/late),
/// `cancelled` (ranks/died). A rank that fails is not waited for until the timeout.
///
/// `internals` is for the library itself (save_internals.h).
Result<SaveReport> save_checkpoint(const std::vector<NamedTree>& trees, const std::string& path,
                                   const SaveOptions& options, Runtime& runtime,
                                   const SaveInternals* internals = nullptr);

/// One tree.
Result<SaveReport> save_tree(const Tree& tree, const std::string& path, const SaveOptions& options,
                             Runtime& runtime, const std::string& prefix = "");

}  // namespace cairn
