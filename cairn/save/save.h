// SPDX-License-Identifier: Apache-2.0
// Saves trees as one checkpoint, atomically. `load/load.h` loads them.
#pragma once

#include <string>
#include <vector>

#include "cairn/runtime/runtime.h"
#include "cairn/save/save_options.h"

namespace cairn {

struct SaveInternals;

/// Blocks until the checkpoint is durable and visible. An existing prefix is replaced whole if it
/// has the same leaves, or if options.overwrite is set; other prefixes and foreign files stay. A
/// path that ends in ".safetensors" is one bare file and takes one tree (`invalid_argument`,
/// save/one-tree); another file is replaced only with options.overwrite. After an error nothing
/// visible has changed, except for an error of `options.committed`. Errors name the leaf and the
/// path.
///
/// With a coordinator every rank makes the same call with its own memory of the same trees. Each
/// distinct box is written once, by one of the ranks that hold it; rank 0 writes arrays that are
/// not sharded. Values must be equal on all ranks; of metadata, extras, mesh and wishes only those
/// of rank 0 are stored. All ranks succeed, or all get one error, which names the rank and what it
/// was doing: `failed_precondition` (save/ranks-disagree) inside it if trees, step or other options
/// differ, `deadline_exceeded` (ranks/late), `cancelled` (ranks/died). If a rank fails, the others
/// do not wait for the timeout.
///
/// `internals` is for the library itself (save_internals.h).
Result<SaveReport> save_checkpoint(const std::vector<NamedTree>& trees, const std::string& path,
                                   const SaveOptions& options, Runtime& runtime,
                                   const SaveInternals* internals = nullptr);

/// One tree.
Result<SaveReport> save_tree(const Tree& tree, const std::string& path, const SaveOptions& options,
                             Runtime& runtime, const std::string& prefix = "");

}  // namespace cairn
