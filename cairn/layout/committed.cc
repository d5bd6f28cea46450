// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/committed.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/base/uri.h"
#include "cairn/commit/snapshot.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/layout/foreign.h"
#include "cairn/manifest/manifest_json.h"
#include "cairn/manifest/names.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

Result<Manifest> read_manifest(storage::Store& store, const std::string& key,
                               const RecordPrefix& recorded) {
  auto read = storage::read_all(store, key, kMaxManifestBytes);
  if (!read && read.error().code() == Code::kNotFound) {
    return Error(Code::kNotFound, "checkpoint/manifest-missing",
                 fmt::format("{} is missing, although cairn.json names it: hidden files were left "
                             "behind when the checkpoint was copied, as `cp -r FROM/* TO` does; "
                             "copy the directory itself, with `cp -r FROM TO`",
                             recorded.manifest));
  }
  CAIRN_TRY_ASSIGN(const Buffer bytes, std::move(read));
  if (bytes.size() != recorded.manifest_bytes ||
      sha256_hex(bytes.bytes()) != recorded.manifest_sha256) {
    return Error(
        Code::kCorrupt, "checkpoint/manifest-digest",
        "the manifest is not the one that the record names: it was damaged or replaced by hand");
  }
  return parse_manifest(as_text(bytes.bytes()));
}

/// The first component of a key and the rest of it, with its slash.
std::pair<std::string, std::string> split_key(const std::string& key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string::npos) return {key, ""};
  return {key.substr(0, slash), key.substr(slash)};
}

}  // namespace

/// A zarr2 prefix is one directory: it is opened once and read relative to that, so that a rename
/// meanwhile changes nothing. Other entries are located one by one.
Result<OpenedPrefix> open_recorded(const DirectoryView& view, const Snapshot& snapshot,
                                   const RecordPrefix& recorded) {
  OpenedPrefix prefix;
  prefix.name = recorded.name;
  const std::string directory = prefix_directory(recorded.name);
  const bool own_directory = !directory.empty() && std::ranges::find(recorded.entries, directory) !=
                                                       recorded.entries.end();
  if (own_directory) {
    CAIRN_TRY_ASSIGN(prefix.store, view.destination->open_below(snapshot.locate(directory)));
    const std::string name = recorded.manifest.substr(directory.size() + 1);
    CAIRN_TRY_ASSIGN(prefix.manifest, read_manifest(*prefix.store, name, recorded));
  } else {
    prefix.store = view.store;
    CAIRN_TRY_ASSIGN(prefix.manifest,
                     read_manifest(*prefix.store, snapshot.locate(recorded.manifest), recorded));
    for (ManifestPart& part : prefix.manifest.parts) part.name = snapshot.locate(part.name);
    for (ManifestArray& array : prefix.manifest.arrays) {
      const auto [first, rest] = split_key(array.stored.key);
      array.stored.key = snapshot.locate(first) + rest;
    }
  }
  if (!prefix.manifest.structure_file.empty())
    prefix.structure_file = snapshot.locate(structure_name(recorded.name));
  CAIRN_TRY_ASSIGN(auto leaves, structure_leaves(prefix.manifest.structure));
  prefix.values = std::move(leaves.values);
  for (const ManifestArray& array : prefix.manifest.arrays) {
    prefix.names.push_back(prefix.manifest.layout == kZarr2Layout && !directory.empty()
                               ? join_path(directory, array.path.directory())
                               : array.path.text());
  }
  return prefix;
}

namespace {

/// Is the array at this place still the one that the manifest speaks of, as far as can be seen
/// without reading it?
bool looks_the_same(storage::Store& store, const format::StoredArray& found,
                    const ManifestArray& ours) {
  const auto text = format::zarr2::dump_metadata(found);
  const auto written = format::zarr2::dump_metadata(ours.stored);
  if (!text || !written || *text != *written) return false;
  for (std::uint64_t n = 0; n < found.chunk_count(); ++n) {
    const auto info = store.stat(found.chunk_key(n));
    if (!info || info->size != ours.sums.lengths()[n]) return false;
  }
  return true;
}

/// A client rewrote the list of a prefix after us: it says which arrays there are and where. What
/// the manifest has of them stays where they look the same; its structure, if all leaves do.
Result<void> follow_index(const DirectoryView& view, const std::vector<IndexedArray>& list,
                          Runtime& runtime, OpenedPrefix& prefix) {
  const std::string below = prefix_directory(prefix.name);
  const bool own_directory =
      prefix.store != view.store && std::ranges::all_of(list, [&](const IndexedArray& array) {
        return array.path.starts_with(below + "/");
      });
  std::vector<std::string> directories;
  directories.reserve(list.size());
  for (const IndexedArray& array : list)
    directories.push_back(own_directory ? array.path.substr(below.size() + 1) : array.path);
  CAIRN_TRY_ASSIGN(OpenedPrefix found,
                   open_directories(own_directory ? prefix.store : view.store,
                                    own_directory ? "" : below, std::move(directories), runtime));
  std::vector<ManifestArray>& arrays = found.manifest.arrays;
  std::unordered_map<std::string, const ManifestArray*> ours;
  const auto written = indexed_arrays(prefix.manifest);
  for (std::size_t i = 0; i < written.size(); ++i)
    ours.emplace(written[i].path, &prefix.manifest.arrays[i]);
  CAIRN_TRY(for_each_index(runtime.executor(), arrays.size(), [&](std::size_t i) -> Result<void> {
    const auto known = ours.find(list[i].path);
    if (known == ours.end()) return {};
    arrays[i].path = known->second->path;
    if (!looks_the_same(*found.store, arrays[i].stored, *known->second)) return {};
    format::StoredArray stored = std::move(arrays[i].stored);
    arrays[i] = *known->second;
    arrays[i].stored = std::move(stored);
    return {};
  }));
  prefix.foreign = !std::ranges::equal(arrays, prefix.manifest.arrays, {}, &ManifestArray::path,
                                       &ManifestArray::path);
  if (prefix.foreign) prefix.manifest.structure = Json();
  prefix.manifest.arrays = std::move(arrays);
  prefix.store = std::move(found.store);
  prefix.names.clear();
  for (const IndexedArray& array : list) prefix.names.push_back(array.path);
  return {};
}

/// Prefixes of ours whose lists in the index are not those that we wrote.
Result<void> follow_changes(const DirectoryView& view, const Snapshot& snapshot,
                            const EformerIndex& index, Runtime& runtime, Checkpoint& checkpoint) {
  // While a decided attempt lies there, the index in place may be that of the save before.
  if (std::ranges::find(snapshot.attempts, AttemptState::kDecided, &AttemptView::state) !=
      snapshot.attempts.end()) {
    return {};
  }
  std::unordered_map<std::string_view, const std::vector<IndexedArray>*> lists;
  lists.emplace("", index.arrays ? &*index.arrays : nullptr);
  for (const IndexedPrefix& indexed : index.prefixes) lists.emplace(indexed.name, &indexed.arrays);
  for (OpenedPrefix& prefix : checkpoint.prefixes) {
    const auto found = lists.find(prefix.name);
    const auto* list = found != lists.end() ? found->second : nullptr;
    if (prefix.manifest.layout != kZarr2Layout || list == nullptr ||
        *list == indexed_arrays(prefix.manifest)) {
      continue;
    }
    CAIRN_TRY(follow_index(view, *list, runtime, prefix).in([&] {
      return fmt::format("prefix '{}' as tensorstore_index.json has it", prefix.name);
    }));
    checkpoint.notes.push_back(fmt::format(
        "prefix '{}': tensorstore_index.json was rewritten after the save, so its arrays are those "
        "that it names; what is not as it was saved has no checksums",
        prefix.name));
  }
  if (checkpoint.notes.empty()) return {};
  CAIRN_TRY_ASSIGN(const Snapshot now, view.destination->snapshot());
  if (now.version() == snapshot.version()) return {};
  return Error(Code::kUnavailable, kReplaced, "it was saved again while it was opened");
}

void add_notes(const Snapshot& snapshot, Checkpoint& checkpoint) {
  for (const AttemptView& attempt : snapshot.attempts) {
    if (attempt.state == AttemptState::kDecided) continue;
    checkpoint.notes.push_back(fmt::format(
        "{} save {} by process {} on {} since {}",
        attempt.state == AttemptState::kAlive ? "in progress: a" : "torn: an unfinished",
        attempt.id, attempt.process, attempt.host, attempt.started));
  }
}

}  // namespace

Result<std::optional<Checkpoint>> open_committed(const DirectoryView& view, Runtime& runtime) {
  if (!view.destination) return std::optional<Checkpoint>();
  CAIRN_TRY_ASSIGN(const Snapshot snapshot, view.destination->snapshot());
  if (!snapshot.record) return std::optional<Checkpoint>();
  Checkpoint checkpoint;
  checkpoint.record = snapshot.record;
  checkpoint.version = snapshot.version();
  checkpoint.mark = snapshot.mark;
  checkpoint.description_file = snapshot.locate(std::string(kCheckpointMetadataName));
  std::set<std::string> known;
  for (const RecordPrefix& recorded : snapshot.record->prefixes) {
    CAIRN_TRY_ASSIGN(auto prefix, open_recorded(view, snapshot, recorded).in([&] {
      return fmt::format("prefix '{}'", recorded.name);
    }));
    checkpoint.kind = "cairn " + prefix.manifest.layout;
    known.insert(recorded.name);
    checkpoint.prefixes.push_back(std::move(prefix));
  }
  CAIRN_TRY_ASSIGN(const auto index, read_index(view));
  std::vector<OpenedPrefix> others;
  if (index) {
    CAIRN_TRY(follow_changes(view, snapshot, *index, runtime, checkpoint));
    CAIRN_TRY_ASSIGN(others, open_indexed(view, *index, known, runtime));
  }
  for (OpenedPrefix& other : others) {
    checkpoint.notes.push_back(
        fmt::format("prefix '{}' was written by another system: it has no checksums", other.name));
    checkpoint.prefixes.push_back(std::move(other));
  }
  add_notes(snapshot, checkpoint);
  return std::optional(std::move(checkpoint));
}

}  // namespace cairn
