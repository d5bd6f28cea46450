// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/open_checkpoint.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/base/uri.h"
#include "cairn/commit/open.h"
#include "cairn/layout/directory_view.h"
#include "cairn/layout/open.h"
#include "cairn/layout/safetensors_opener.h"
#include "cairn/manifest/checkpoint_metadata.h"
#include "cairn/manifest/names.h"
#include "cairn/runtime/in_flight.h"
#include "cairn/storage/open.h"
#include "cairn/tree/key_depth.h"

namespace cairn {

namespace {

Result<Checkpoint> open_file(const Uri& uri, Runtime& runtime) {
  const auto [parent, name] = split_uri(uri);
  CAIRN_TRY_ASSIGN(
      std::shared_ptr<storage::Store> store,
      storage::open_store(parent, {.file_system = &runtime.file_system(), .create = false}));
  if (name.ends_with(".safetensors.index.json")) {
    // The set it belongs to, and nothing else of the folder.
    const DirectoryView view{uri.to_string(), nullptr, store, {name}};
    return open_layout(view, runtime);
  }
  CAIRN_TRY_ASSIGN(auto prefix, open_safetensors_file(store, name));
  Checkpoint checkpoint;
  checkpoint.path = uri.to_string();
  checkpoint.kind = prefix.foreign ? "safetensors" : "cairn safetensors";
  checkpoint.prefixes.push_back(std::move(prefix));
  return checkpoint;
}

Error not_found(const std::string& path) {
  return Error(Code::kNotFound, "checkpoint/not-found", fmt::format("{} does not exist", path));
}

Result<Checkpoint> open_directory(const Uri& uri, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const DirectoryView view, view_directory(uri, runtime));
  if (!uri.local()) {
    // Keys have no directories: what has nothing below it is not there.
    CAIRN_TRY_ASSIGN(const auto there, view.store->list("", false));
    if (there.empty()) return not_found(uri.to_string());
  }
  return open_layout(view, runtime);
}

Result<bool> is_file(const Uri& uri, Runtime& runtime) {
  const auto local = uri.local();
  if (!local) return is_bare_file(uri.path);
  auto info = runtime.file_system().stat(nullptr, *local, true);
  if (info) return info->kind == storage::FileKind::kFile;
  if (info.error().code() != Code::kNotFound) return std::move(info).error();
  return not_found(*local);
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
  std::uint64_t unlisted = 0;  // chunks that no manifest has sums of
  for (const OpenedPrefix& prefix : checkpoint.prefixes) {
    for (const ManifestArray& array : prefix.manifest.arrays) {
      decoded += array.stored.chunk_count() * array.stored.chunk_memory_bytes();
      if (array.sums.empty()) unlisted += array.stored.chunk_count();
      if (unlisted > kMaxUnlistedChunks) {
        return Error(Code::kUnimplemented, "checkpoint/too-many-chunks",
                     fmt::format("the arrays up to {} have {} chunks together; at most {} of "
                                 "another system's can be read",
                                 shortened_name(array.path.text()), unlisted, kMaxUnlistedChunks));
      }
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
  const auto destination = open_destination(uri, runtime);
  if (!destination) return std::nullopt;
  const auto snapshot = (*destination)->snapshot();
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

}  // namespace cairn
