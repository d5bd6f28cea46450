// SPDX-License-Identifier: Apache-2.0
// What lies in a directory: one row a layout in open.cc, asked in order.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/uri.h"
#include "cairn/checkpoint/checkpoint.h"
#include "cairn/checkpoint/layout/eformer_index.h"

namespace cairn::inline checkpoint {

struct Snapshot;

/// A directory (or bucket folder) that is being opened.
struct Place {
  std::string path;                       ///< as the user gave it
  std::optional<LocalPath> directory;     ///< on a file system: its path
  std::shared_ptr<storage::Store> store;  ///< rooted at it
  std::vector<std::string> files;         ///< names directly in it, sorted
};

/// A directory or a folder in a bucket, with the names directly in it.
Result<Place> place_of(const Uri& uri, Runtime& runtime);

/// Asks each layout; the first that answers wins. `failed_precondition`
/// (checkpoint/not-a-checkpoint), or what strangers.h recognises.
Result<Checkpoint> open_layout(const Place& place, Runtime& runtime);

/// One prefix of a record of ours, as its manifest says it is. Errors of reading the manifest.
Result<OpenedPrefix> open_recorded(const Place& place, const Snapshot& snapshot,
                                   const RecordPrefix& recorded, Runtime& runtime);

/// The rows. Each returns nothing if the directory is not its own.
Result<std::optional<Checkpoint>> open_committed(const Place& place, Runtime& runtime);
Result<std::optional<Checkpoint>> open_single_array(const Place& place, Runtime& runtime);
Result<std::optional<Checkpoint>> open_eformer(const Place& place, Runtime& runtime);
Result<std::optional<Checkpoint>> open_safetensors(const Place& place, Runtime& runtime);
Result<std::optional<Checkpoint>> open_loose_arrays(const Place& place, Runtime& runtime);

/// tensorstore_index.json, if it is there.
Result<std::optional<EformerIndex>> read_index(const Place& place);
/// Prefixes of an index whose names are not in `known`.
Result<std::vector<OpenedPrefix>> open_indexed(const Place& place, const EformerIndex& index,
                                               const std::vector<std::string>& known,
                                               Runtime& runtime);
/// zarr v2 arrays by their directories in a store; key paths are what follows `below` in them.
Result<OpenedPrefix> open_directories(std::shared_ptr<storage::Store> store,
                                      const std::string& below,
                                      std::vector<std::string> directories, Runtime& runtime);

/// The key path of an array of another system: its directory, without `below` if it lies there.
KeyPath path_of_directory(std::string_view directory, std::string_view below);

/// One safetensors file: with the manifest inside it, or as foreign. It is held open, so that its
/// header and its data are of the same file although another one takes its place.
Result<OpenedPrefix> open_safetensors_file(const std::shared_ptr<storage::Store>& store,
                                           const std::string& name);

/// Key paths for names that other systems chose: split at '.', and decoded if all of them are as
/// KeyPath::text() says them. If a leaf then stood where another has children, each name is one
/// part.
std::vector<KeyPath> paths_of_names(const std::vector<std::string>& names);

}  // namespace cairn::inline checkpoint
