// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/foreign.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/bytes.h"
#include "cairn/format/open.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/manifest/checkpoint_metadata.h"
#include "cairn/manifest/eformer_structure.h"
#include "cairn/manifest/names.h"
#include "cairn/tree/key_depth.h"

namespace cairn {

namespace {

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    parts.push_back(part_of_reference(path.substr(0, slash)));
    path = slash == std::string_view::npos ? "" : path.substr(slash + 1);
  }
  return parts;
}

std::vector<std::string> directories_of(const std::vector<IndexedArray>& arrays) {
  std::vector<std::string> directories;
  directories.reserve(arrays.size());
  for (const IndexedArray& array : arrays) directories.push_back(array.path);
  return directories;
}

std::string unchecked_note(std::string_view what) {
  return fmt::format("{}: nothing could be checked but that it decodes", what);
}

/// But for what saves have not decided, or have removed.
std::set<std::string> directories_with(std::initializer_list<std::string_view> names,
                                       const std::vector<storage::ListEntry>& entries) {
  std::set<std::string> directories;
  for (const storage::ListEntry& entry : entries) {
    const std::size_t slash = entry.key.rfind('/');
    if (slash == std::string::npos) continue;
    if (std::ranges::find(names, std::string_view(entry.key).substr(slash + 1)) == names.end())
      continue;
    if (("/" + entry.key).find("/" + std::string(kAttemptPrefix)) == std::string::npos)
      directories.insert(entry.key.substr(0, slash));
  }
  return directories;
}

bool is_inside_of(const std::set<std::string>& checkpoints, std::string directory) {
  while (!checkpoints.contains(directory)) {
    const std::size_t slash = directory.rfind('/');
    if (slash == std::string::npos) return false;
    directory.resize(slash);
  }
  return true;
}

Error no_checkpoint_but(const std::set<std::string>& checkpoints) {
  return Error(
      Code::kFailedPrecondition, "checkpoint/not-a-checkpoint",
      fmt::format("there is no checkpoint here, but there are some in its subdirectories ({}): "
                  "`cairn ls` lists them; name one",
                  *checkpoints.rbegin()));
}

Result<CheckpointMetadata> read_metadata(const DirectoryView& view) {
  CAIRN_TRY_ASSIGN(const Buffer text, storage::read_all(*view.store, kCheckpointMetadataName,
                                                        kMaxCheckpointMetadataBytes));
  return parse_checkpoint_metadata(as_text(text.bytes()));
}

/// The digests of the arrays, if there is one for each and no others.
bool take_digests(const CheckpointMetadata& metadata, Manifest& manifest) {
  std::unordered_map<std::string_view, const std::string*> digests;
  for (const auto& [key, digest] : metadata.checksum) digests.emplace(key, digest.text());
  const auto digest_of = [&](const ManifestArray& array) -> const std::string* {
    const auto found = digests.find(array.path.text());
    return found == digests.end() ? nullptr : found->second;
  };
  if (manifest.arrays.empty() || digests.size() != manifest.arrays.size()) return false;
  if (!std::ranges::all_of(manifest.arrays, digest_of)) return false;
  for (ManifestArray& array : manifest.arrays) array.sha256 = *digest_of(array);
  return true;
}

/// checkpoint_metadata.json speaks of the tree that was saved last, and does not say which that
/// was: digests are taken only where there is but one.
void add_metadata(const DirectoryView& view, Checkpoint& checkpoint) {
  const auto metadata = read_metadata(view);
  if (!metadata && metadata.error().code() != Code::kNotFound) {
    checkpoint.notes.push_back(
        fmt::format("{} was left aside: {}", kCheckpointMetadataName, metadata.error().message()));
  }
  bool checkable = false;
  if (metadata) {
    // Each prefix gets a copy: no more than the file could hold.
    const std::uint64_t bytes = dump_json(metadata->custom_metadata).size();
    if (bytes * checkpoint.prefixes.size() <= kMaxCheckpointMetadataBytes) {
      for (OpenedPrefix& prefix : checkpoint.prefixes)
        prefix.manifest.metadata = metadata->custom_metadata;
    } else {
      checkpoint.notes.push_back(fmt::format("{}: its custom metadata are too long for {} trees",
                                             kCheckpointMetadataName, checkpoint.prefixes.size()));
    }
    checkable = checkpoint.prefixes.size() == 1 &&
                take_digests(*metadata, checkpoint.prefixes.front().manifest);
  }
  checkpoint.notes.push_back(
      checkable ? "written by another system, with a SHA-256 of each array, which verify and "
                  "validating loads check"
                : unchecked_note("written by another system"));
}

/// Puts the arrays into the order of the structure file. False if it names others.
bool reorder(const std::vector<std::string>& directories, OpenedPrefix& prefix) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < prefix.names.size(); ++i) places.emplace(prefix.names[i], i);
  std::vector<std::size_t> order;
  for (const std::string& directory : directories) {
    const auto place = places.extract(directory);
    if (!place) return false;
    order.push_back(place.mapped());
  }
  if (!places.empty()) return false;
  std::vector<ManifestArray> arrays;
  arrays.reserve(order.size());
  for (const std::size_t place : order) arrays.push_back(std::move(prefix.manifest.arrays[place]));
  prefix.manifest.arrays = std::move(arrays);
  prefix.names = directories;
  return true;
}

Result<EformerStructure> read_structure(const DirectoryView& view, const std::string& prefix) {
  CAIRN_TRY_ASSIGN(const Buffer text, storage::read_all(*view.store, structure_name(prefix),
                                                        kMaxEformerStructureBytes));
  return parse_eformer_structure(as_text(text.bytes()), prefix);
}

/// Containers, and leaves that are no arrays, as the structure file has them. Where it cannot be
/// used, the tree stays nested dicts, and a note says so.
void take_structure(const DirectoryView& view, OpenedPrefix& prefix) {
  const std::string file = prefix.name.empty() ? "" : structure_name(prefix.name);
  if (!std::ranges::binary_search(view.files, file)) return;
  auto read = read_structure(view, prefix.name);
  if (read) prefix.manifest.extras = std::move(read->extras);
  if (!read || !reorder(read->arrays, prefix)) {
    prefix.notes.push_back(fmt::format(
        "{} was not used, the tree is nested dicts: {}", file,
        read ? "it names other arrays than tensorstore_index.json" : read.error().to_string()));
    return;
  }
  for (std::size_t i = 0; i < read->paths.size(); ++i)
    prefix.manifest.arrays[i].path = std::move(read->paths[i]);
  prefix.manifest.structure = std::move(read->structure);
  prefix.values = std::move(read->values);
  prefix.notes = std::move(read->notes);
  prefix.structure_file = file;
}

}  // namespace

Result<std::optional<EformerIndex>> read_index(const DirectoryView& view) {
  if (!std::ranges::binary_search(view.files, std::string(kIndexName)))
    return std::optional<EformerIndex>();
  CAIRN_TRY_ASSIGN(const Buffer text,
                   storage::read_all(*view.store, kIndexName, kMaxEformerIndexBytes));
  CAIRN_TRY_ASSIGN(auto index, parse_eformer_index(as_text(text.bytes())));
  return std::optional(std::move(index));
}

KeyPath path_of_directory(std::string_view directory, std::string_view below) {
  const bool inside = !below.empty() && directory.starts_with(below) &&
                      (directory.size() == below.size() || directory[below.size()] == '/');
  const std::size_t skip = inside ? std::min(directory.size(), below.size() + 1) : 0;
  return KeyPath(split_path(directory.substr(skip)));
}

Result<OpenedPrefix> open_directories(std::shared_ptr<storage::Store> store,
                                      const std::string& below,
                                      std::vector<std::string> directories, Runtime& runtime) {
  OpenedPrefix prefix;
  prefix.foreign = true;
  prefix.store = std::move(store);
  prefix.manifest.layout = kZarr2Layout;
  prefix.manifest.arrays.resize(directories.size());
  CAIRN_TRY(
      for_each_index(runtime.executor(), directories.size(), [&](std::size_t i) -> Result<void> {
        const std::string& directory = directories[i];
        ManifestArray& array = prefix.manifest.arrays[i];
        CAIRN_TRY_ASSIGN(array.stored, format::open_array(*prefix.store, directory).in([&] {
          return "array " + shortened_name(directory);
        }));
        array.path = path_of_directory(directory, below);
        return {};
      }));
  prefix.names = std::move(directories);
  return prefix;
}

Result<std::vector<OpenedPrefix>> open_indexed(const DirectoryView& view, const EformerIndex& index,
                                               const std::set<std::string>& known,
                                               Runtime& runtime) {
  std::vector<OpenedPrefix> prefixes;
  const auto add = [&](const std::string& name,
                       const std::vector<IndexedArray>& arrays) -> Result<void> {
    if (known.contains(name)) return {};
    CAIRN_TRY_ASSIGN(auto prefix, open_directories(view.store, prefix_directory(name),
                                                   directories_of(arrays), runtime));
    prefix.name = prefix.manifest.prefix = name;
    take_structure(view, prefix);
    prefixes.push_back(std::move(prefix));
    return {};
  };
  if (index.arrays) CAIRN_TRY(add("", *index.arrays));
  for (const IndexedPrefix& indexed : index.prefixes) CAIRN_TRY(add(indexed.name, indexed.arrays));
  return prefixes;
}

Result<std::optional<Checkpoint>> open_eformer(const DirectoryView& view, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto index, read_index(view));
  if (!index) return std::optional<Checkpoint>();
  CAIRN_TRY_ASSIGN(auto prefixes, open_indexed(view, *index, {}, runtime));
  if (prefixes.empty()) return std::optional<Checkpoint>();
  prefixes.front().any_name = !index->knows_prefixes;
  Checkpoint checkpoint;
  checkpoint.kind = "tensorstore index";
  checkpoint.prefixes = std::move(prefixes);
  add_metadata(view, checkpoint);
  return std::optional(std::move(checkpoint));
}

Result<std::optional<Checkpoint>> open_single_array(const DirectoryView& view, Runtime& runtime) {
  if (!std::ranges::binary_search(view.files, std::string(format::zarr2::kMetadataName))) {
    return std::optional<Checkpoint>();
  }
  Checkpoint checkpoint;
  checkpoint.kind = "zarr2 array";
  CAIRN_TRY_ASSIGN(auto prefix, open_directories(view.store, "", {""}, runtime));
  checkpoint.prefixes.push_back(std::move(prefix));
  checkpoint.notes.push_back(unchecked_note("one array without a manifest"));
  return std::optional(std::move(checkpoint));
}

Result<std::optional<Checkpoint>> open_loose_arrays(const DirectoryView& view, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto entries, view.store->list("", true));
  const auto checkpoints = directories_with({kRecordName, kIndexName}, entries);
  std::vector<std::string> directories;
  for (const std::string& directory : directories_with({format::zarr2::kMetadataName}, entries)) {
    if (!is_inside_of(checkpoints, directory)) directories.push_back(directory);
  }
  if (directories.empty() && !checkpoints.empty()) return no_checkpoint_but(checkpoints);
  if (directories.empty()) return std::optional<Checkpoint>();
  Checkpoint checkpoint;
  checkpoint.kind = "zarr2 arrays";
  CAIRN_TRY_ASSIGN(auto prefix, open_directories(view.store, "", std::move(directories), runtime));
  checkpoint.prefixes.push_back(std::move(prefix));
  checkpoint.notes.push_back(unchecked_note("arrays without an index"));
  return std::optional(std::move(checkpoint));
}

}  // namespace cairn
