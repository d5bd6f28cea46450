// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/layout/open.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/base/uri.h"
#include "cairn/checkpoint/checkpoint_metadata.h"
#include "cairn/checkpoint/commit/snapshot.h"
#include "cairn/checkpoint/layout/strangers.h"
#include "cairn/checkpoint/names.h"
#include "cairn/checkpoint/save/in_flight.h"
#include "cairn/storage/open.h"
#include "cairn/tree/key_depth.h"

namespace cairn::inline checkpoint {

namespace {

using Opener = Result<std::optional<Checkpoint>> (*)(const Place&, Runtime&);

constexpr Opener kLayouts[] = {
    open_committed, open_single_array, open_eformer, open_safetensors, open_loose_arrays,
};

bool parses_as_path(const std::string& name) {
  const auto path = KeyPath::parse(name);
  return path && path->text() == name && !path->empty();
}

KeyPath split_at_dots(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char byte : name) {
    if (byte == '.') {
      parts.emplace_back();
    } else {
      parts.back() += byte;
    }
  }
  return KeyPath(std::move(parts));
}

bool has_leaf_above_another(std::vector<KeyPath> paths) {
  std::ranges::sort(paths);
  const auto begins_with = [](const KeyPath& a, const KeyPath& b) { return b.starts_with(a); };
  return std::ranges::adjacent_find(paths, begins_with) != paths.end();
}

}  // namespace

Result<Place> place_of(const Uri& uri, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(
      std::shared_ptr<storage::Store> store,
      storage::open_store(uri, {.file_system = &runtime.file_system(), .create = false}));
  Place place{uri.to_string(), std::nullopt, store, {}};
  if (auto local = uri.local()) place.directory = *std::move(local);
  CAIRN_TRY_ASSIGN(const auto entries, store->list("", false));
  for (const storage::ListEntry& entry : entries) {
    if (!entry.directory) place.files.push_back(entry.key);
  }
  return place;
}

Result<Checkpoint> open_layout(const Place& place, Runtime& runtime) {
  for (const Opener open : kLayouts) {
    CAIRN_TRY_ASSIGN(auto found, open(place, runtime));
    if (!found) continue;
    found->path = place.path;
    if (place.directory && found->description_file.empty())
      found->description_file = kCheckpointMetadataName;
    return *std::move(found);
  }
  if (auto stranger = recognise_directory(place.files)) return *std::move(stranger);
  return Error(
      Code::kFailedPrecondition, "checkpoint/not-a-checkpoint",
      "there is no checkpoint here: no cairn.json, tensorstore_index.json, .safetensors file or "
      ".zarray was found");
}

std::vector<KeyPath> paths_of_names(const std::vector<std::string>& names) {
  const bool encoded = std::ranges::all_of(names, parses_as_path);
  std::vector<KeyPath> paths;
  paths.reserve(names.size());
  for (const std::string& name : names)
    paths.push_back(encoded ? *KeyPath::parse(name) : split_at_dots(name));
  if (has_leaf_above_another(paths)) {
    paths.clear();
    for (const std::string& name : names) paths.push_back(KeyPath({name}));
  }
  return paths;
}

std::optional<std::size_t> OpenedPrefix::find(const KeyPath& path) const {
  const auto& arrays = manifest.arrays;
  const auto found = std::ranges::find(arrays, path, &ManifestArray::path);
  if (found == arrays.end()) return std::nullopt;
  return static_cast<std::size_t>(found - arrays.begin());
}

namespace {

// One safetensors file of another system holds one tree, whatever it is asked for as. Where an
// index lists no prefixes, or there is none, paths begin with them.
bool may_be_called(const OpenedPrefix& only, const std::string& name) {
  if (!only.foreign) return false;
  if (only.any_name || only.manifest.layout == kSafetensorsLayout) return true;
  const KeyPath above({name});
  return only.name.empty() &&
         std::ranges::any_of(only.manifest.arrays, [&](const ManifestArray& array) {
           return array.path.starts_with(above);
         });
}

}  // namespace

Result<const OpenedPrefix*> Checkpoint::prefix(const std::optional<std::string>& name) const {
  if (prefixes.size() == 1 && name && may_be_called(prefixes[0], *name)) return &prefixes[0];
  std::string there;
  for (const OpenedPrefix& prefix : prefixes) {
    if (name ? prefix.name == *name : prefixes.size() == 1 || prefix.name.empty()) return &prefix;
    there += fmt::format("{}{}", there.empty() ? "" : ", ",
                         prefix.name.empty() ? "(no prefix)" : prefix.name);
  }
  if (name) {
    return Error(Code::kNotFound, "load/prefix-missing",
                 fmt::format("prefix '{}' not found in {}; it has: {}", *name, path, there));
  }
  return Error(Code::kInvalidArgument, "load/prefix-ambiguous",
               fmt::format("{} has several prefixes; choose one of: {}", path, there));
}

Result<std::vector<const OpenedPrefix*>> select_prefixes(const Checkpoint& checkpoint,
                                                         const std::optional<std::string>& name) {
  std::vector<const OpenedPrefix*> selected;
  if (name) {
    CAIRN_TRY_ASSIGN(const OpenedPrefix* prefix, checkpoint.prefix(name));
    selected.push_back(prefix);
  } else {
    for (const OpenedPrefix& prefix : checkpoint.prefixes) selected.push_back(&prefix);
  }
  return selected;
}

bool is_selected(const KeyPath& path, const std::vector<KeyPath>& keys) {
  const auto above = [&](const KeyPath& key) { return path.starts_with(key); };
  return keys.empty() || std::ranges::any_of(keys, above);
}

namespace {

Result<Checkpoint> open_file(const Uri& uri, Runtime& runtime) {
  const auto [parent, name] = split_uri(uri);
  CAIRN_TRY_ASSIGN(
      std::shared_ptr<storage::Store> store,
      storage::open_store(parent, {.file_system = &runtime.file_system(), .create = false}));
  if (name.ends_with(".safetensors.index.json")) {
    // The set it belongs to, and nothing else of the folder.
    const Place place{uri.to_string(), std::nullopt, store, {name}};
    return open_layout(place, runtime);
  }
  CAIRN_TRY_ASSIGN(auto prefix, open_safetensors_file(store, name));
  Checkpoint checkpoint;
  checkpoint.path = uri.to_string();
  checkpoint.kind = prefix.foreign ? "safetensors" : "cairn safetensors";
  checkpoint.prefixes.push_back(std::move(prefix));
  return checkpoint;
}

Result<Checkpoint> open_directory(const Uri& uri, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Place place, place_of(uri, runtime));
  return open_layout(place, runtime);
}

Result<bool> is_file(const Uri& uri, Runtime& runtime) {
  const auto local = uri.local();
  if (!local) return uri.path.ends_with(".safetensors");
  auto info = runtime.file_system().stat(nullptr, *local, true);
  if (info) return info->kind == storage::FileKind::kFile;
  if (info.error().code() != Code::kNotFound) return std::move(info).error();
  return Error(Code::kNotFound, "checkpoint/not-found",
               fmt::format("{} does not exist", local->text()));
}

/// Of all leaves, whichever reader made their paths.
Result<void> check_depths(const Checkpoint& checkpoint) {
  const auto check = [](const KeyPath& path) -> Result<void> {
    const std::size_t parts = path.parts().size();
    return parts > kMaxKeyParts ? check_key_depth(parts, path.text()) : Result<void>();
  };
  for (const OpenedPrefix& prefix : checkpoint.prefixes) {
    for (const ManifestArray& array : prefix.manifest.arrays) CAIRN_TRY(check(array.path));
    for (const auto& [path, value] : prefix.values) CAIRN_TRY(check(path));
  }
  return {};
}

/// All arrays and all their stored bytes, so that nobody who adds some of them up need check.
Result<void> check_total_sizes(const Checkpoint& checkpoint) {
  std::uint64_t decoded = 0;
  std::uint64_t stored = 0;
  for (const OpenedPrefix& prefix : checkpoint.prefixes) {
    for (const ManifestArray& array : prefix.manifest.arrays) {
      decoded += array.stored.chunk_count() * array.stored.chunk_memory_bytes();
      for (const std::uint64_t length : array.sums.lengths()) {
        stored += length;
        if (stored > format::kMaxArrayBytes) break;
      }
      if (std::max(decoded, stored) <= format::kMaxArrayBytes) continue;
      return Error(
          Code::kCorrupt, "checkpoint/size-overflow",
          fmt::format("the arrays up to {} claim more than {} together",
                      shortened_name(array.path.text()), format_bytes(format::kMaxArrayBytes)));
    }
  }
  return {};
}

Result<Checkpoint> open_once(const Uri& uri, bool file, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(Checkpoint checkpoint,
                   file ? open_file(uri, runtime) : open_directory(uri, runtime));
  CAIRN_TRY(check_depths(checkpoint));
  CAIRN_TRY(check_total_sizes(checkpoint));
  return checkpoint;
}

/// Of a checkpoint of ours; nothing for anything else.
std::optional<std::string> current_version(const Uri& uri, Runtime& runtime) {
  const auto local = uri.local();
  if (!local) return std::nullopt;
  const auto snapshot = take_snapshot(runtime.file_system(), *local);
  return snapshot && snapshot->record ? std::optional(snapshot->version()) : std::nullopt;
}

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(path));
  wait_for_saves(path, runtime.rank());
  CAIRN_TRY_ASSIGN(const bool file, is_file(uri, runtime));
  std::optional<std::string> failed_at;
  for (int reopened = 0;; ++reopened) {
    auto opened = open_once(uri, file, runtime).in([&] { return "opening " + path; });
    if (opened || reopened == kMostReopenings) return opened;
    if (opened.error().reason() == "storage/replaced") continue;
    // Nobody committed between two failures: it is not a commit that makes it fail.
    const auto version = current_version(uri, runtime);
    if (!version || version == failed_at) return opened;
    failed_at = version;
  }
}

namespace {

Error replaced(const Checkpoint& checkpoint) {
  return Error(Code::kUnavailable, kReplaced,
               fmt::format("{} was saved again or removed after it was opened; open it again",
                           checkpoint.path));
}

}  // namespace

Result<void> check_unchanged(const Checkpoint& checkpoint, Runtime& runtime) {
  const auto uri = parse_uri(checkpoint.path);
  if (!uri || !checkpoint.record || current_version(*uri, runtime) == checkpoint.version) return {};
  return replaced(checkpoint);
}

Result<std::optional<std::string>> read_description(const Checkpoint& checkpoint,
                                                    Runtime& runtime) {
  std::optional<std::string> description;
  if (checkpoint.description_file.empty()) return description;
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(checkpoint.path));
  CAIRN_TRY_ASSIGN(
      const auto store,
      storage::open_store(uri, {.file_system = &runtime.file_system(), .create = false}));
  const auto text =
      storage::read_all(*store, checkpoint.description_file, kMaxCheckpointMetadataBytes);
  CAIRN_TRY(check_unchanged(checkpoint, runtime));
  if (text) {
    description = as_text(text->bytes());
  } else if (text.error().code() != Code::kNotFound) {
    return text.error();
  }
  return description;
}

Error explain_failure(const Error& error, const Checkpoint& checkpoint, Runtime& runtime) {
  if (error.reason() == "storage/replaced") return replaced(checkpoint);
  const auto unchanged = check_unchanged(checkpoint, runtime);
  return unchanged ? error : unchanged.error();
}

}  // namespace cairn::inline checkpoint
