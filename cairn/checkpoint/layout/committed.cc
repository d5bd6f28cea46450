// SPDX-License-Identifier: Apache-2.0
// Our own checkpoints: the record says which prefixes there are, each manifest says the rest.
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/checkpoint/commit/snapshot.h"
#include "cairn/checkpoint/layout/open.h"
#include "cairn/checkpoint/names.h"
#include "cairn/storage/local/local_store.h"
#include "cairn/tree/structure.h"

namespace cairn::inline checkpoint {

namespace {

Result<Manifest> read_manifest(storage::Store& store, const std::string& key,
                               const RecordPrefix& recorded) {
  CAIRN_TRY_ASSIGN(const Buffer bytes, storage::read_all(store, key, kMaxManifestBytes));
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

/// A zarr2 prefix is one directory: it is opened once and read relative to that, so that a rename
/// meanwhile changes nothing. Other entries are located one by one.
Result<OpenedPrefix> open_prefix(const Place& place, const Snapshot& snapshot,
                                 const RecordPrefix& recorded, Runtime& runtime) {
  OpenedPrefix prefix;
  prefix.name = recorded.name;
  const std::string directory = prefix_directory(recorded.name);
  const bool own_directory =
      recorded.entries.size() == 1 && !directory.empty() && recorded.entries[0] == directory;
  if (own_directory) {
    CAIRN_TRY_ASSIGN(prefix.store, storage::open_local_store(
                                       runtime.file_system(),
                                       *place.directory + "/" + snapshot.locate(directory)));
    const std::string name = recorded.manifest.substr(directory.size() + 1);
    CAIRN_TRY_ASSIGN(prefix.manifest, read_manifest(*prefix.store, name, recorded));
  } else {
    prefix.store = place.store;
    CAIRN_TRY_ASSIGN(prefix.manifest,
                     read_manifest(*prefix.store, snapshot.locate(recorded.manifest), recorded));
    for (ManifestPart& part : prefix.manifest.parts) part.name = snapshot.locate(part.name);
    for (ManifestArray& array : prefix.manifest.arrays) {
      const auto [first, rest] = split_key(array.stored.key);
      array.stored.key = snapshot.locate(first) + rest;
    }
  }
  CAIRN_TRY_ASSIGN(auto leaves, structure_leaves(prefix.manifest.structure));
  prefix.values = std::move(leaves.values);
  for (const ManifestArray& array : prefix.manifest.arrays) {
    prefix.names.push_back(prefix.manifest.layout == kZarr2Layout && !directory.empty()
                               ? directory + "/" + array.path.directory()
                               : array.path.text());
  }
  return prefix;
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

Result<std::optional<Checkpoint>> open_committed(const Place& place, Runtime& runtime) {
  if (!place.directory) return std::optional<Checkpoint>();
  CAIRN_TRY_ASSIGN(const Snapshot snapshot, take_snapshot(runtime.file_system(), *place.directory));
  if (!snapshot.record) return std::optional<Checkpoint>();
  Checkpoint checkpoint;
  checkpoint.record = snapshot.record;
  checkpoint.version = snapshot.version();
  std::vector<std::string> known;
  for (const RecordPrefix& recorded : snapshot.record->prefixes) {
    CAIRN_TRY_ASSIGN(auto prefix, open_prefix(place, snapshot, recorded, runtime).in([&] {
      return fmt::format("prefix '{}'", recorded.name);
    }));
    checkpoint.kind = "cairn " + prefix.manifest.layout;
    known.push_back(recorded.name);
    checkpoint.prefixes.push_back(std::move(prefix));
  }
  CAIRN_TRY_ASSIGN(auto others, open_indexed(place, known, runtime));
  for (OpenedPrefix& other : others) {
    checkpoint.notes.push_back(
        fmt::format("prefix '{}' was written by another system: it has no checksums", other.name));
    checkpoint.prefixes.push_back(std::move(other));
  }
  add_notes(snapshot, checkpoint);
  return std::optional(std::move(checkpoint));
}

}  // namespace cairn::inline checkpoint
