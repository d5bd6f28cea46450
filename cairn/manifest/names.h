// SPDX-License-Identifier: Apache-2.0
// Names of the files of a checkpoint. docs/format/checkpoint.md says what each holds.
#pragma once

#include <string>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

constexpr std::string_view kRecordName = "cairn.json";
constexpr std::string_view kMarkName = "metadata.json";
/// Replaces the mark of a checkpoint that was found torn.
constexpr std::string_view kTornMarkName = "metadata.json.torn";
constexpr std::string_view kIndexName = "tensorstore_index.json";
constexpr std::string_view kCheckpointMetadataName = "checkpoint_metadata.json";
constexpr std::string_view kLockName = ".cairn-lock";
constexpr std::string_view kTrashName = ".cairn-trash";
/// A checkpoint with this file keeps all its files: nothing there is removed.
constexpr std::string_view kPinName = ".cairn-pin";
constexpr std::string_view kDamageName = ".cairn-damage";
/// A new mark, pin or note before it gets its final name; the name tells whose file it is if it is
/// left over.
constexpr const char* kAsideName = ".cairn-aside";
/// In a run directory: its owner, and the lock under which the owner changes and commits are
/// decided.
constexpr std::string_view kOwnerName = ".cairn-owner.json";
constexpr std::string_view kRunLockName = ".cairn-run-lock";
/// In a run directory: a request to save.
constexpr std::string_view kRequestName = ".cairn-request.json";
/// An attempt is the directory ".cairn-<attempt id>".
constexpr std::string_view kAttemptPrefix = ".cairn-";
/// The stored layouts, as `layout` in manifests and on the command line.
constexpr std::string_view kZarr2Layout = "zarr2";
constexpr std::string_view kSafetensorsLayout = "safetensors";

/// Is a checkpoint at this path one bare safetensors file? Otherwise it is a directory.
bool is_bare_file(std::string_view path);

/// Key in `__metadata__` of a bare safetensors file under which its manifest stands.
constexpr std::string_view kEmbeddedManifest = "cairn";

/// A prefix names one tree of a checkpoint; "." in it becomes a directory, as in the reference
/// system. "" is the tree without a prefix. `invalid_argument` (prefix/invalid) for a name that
/// would leave the checkpoint, be hidden in it (a leading dot) or clash with one of our own files.
Result<void> check_prefix(std::string_view prefix);
/// "a.b" lies in "a/b"; "" lies in "".
std::string prefix_directory(std::string_view prefix);

/// zarr2: "<prefix directory>/.cairn.json", or ".cairn-manifest.json" without a prefix.
std::string zarr2_manifest_name(std::string_view prefix);
/// The reference system's description of a tree with a prefix: "<prefix>_structure.json".
std::string structure_name(std::string_view prefix);
/// safetensors: base name of the files, "model" without a prefix.
std::string safetensors_base(std::string_view prefix);
/// safetensors: "<base>.cairn.json".
std::string safetensors_manifest_name(std::string_view prefix);

}  // namespace cairn
