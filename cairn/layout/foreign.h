// SPDX-License-Identifier: Apache-2.0
// zarr v2 arrays of other systems: the reference system's checkpoints, arrays without an index, one
// array.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/layout/directory_view.h"
#include "cairn/manifest/eformer_index.h"

namespace cairn {

/// Each returns nullopt if the directory is of another kind.
Result<std::optional<Checkpoint>> open_single_array(const DirectoryView& view, Runtime& runtime);
Result<std::optional<Checkpoint>> open_eformer(const DirectoryView& view, Runtime& runtime);
Result<std::optional<Checkpoint>> open_loose_arrays(const DirectoryView& view, Runtime& runtime);

/// tensorstore_index.json, if it is there.
Result<std::optional<EformerIndex>> read_index(const DirectoryView& view);
/// Prefixes of an index whose names are not in `known`.
Result<std::vector<OpenedPrefix>> open_indexed(const DirectoryView& view, const EformerIndex& index,
                                               const std::set<std::string>& known,
                                               Runtime& runtime);
/// zarr v2 arrays by their directories in a store; key paths are what follows `below` in them.
Result<OpenedPrefix> open_directories(std::shared_ptr<storage::Store> store,
                                      const std::string& below,
                                      std::vector<std::string> directories, Runtime& runtime);

/// The key path of an array of another system: its directory, without `below` if it lies there.
KeyPath path_of_directory(std::string_view directory, std::string_view below);

}  // namespace cairn
