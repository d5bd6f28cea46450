// SPDX-License-Identifier: Apache-2.0
// `Checkpoint`: what is at a path, opened from its metadata alone. `load/` and `inspect/` read its
// arrays.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/manifest/manifest.h"
#include "cairn/manifest/record.h"
#include "cairn/storage/store.h"
#include "cairn/tree/value.h"

namespace cairn {

/// One tree of an opened checkpoint. Threading: compatible.
struct OpenedPrefix {
  std::string name;       ///< "" for a tree without a prefix
  bool any_name = false;  ///< matches any requested prefix
  /// A checkpoint of another system has no structure (null) and no sums; the rest comes from its
  /// own metadata.
  Manifest manifest;
  bool foreign = false;
  std::vector<std::string> names;  ///< of each array as stored: directory or tensor name
  std::vector<std::pair<KeyPath, Value>> values;  ///< leaves that are not arrays
  /// For people: containers and values that could not be recovered. Loads log them.
  std::vector<std::string> notes = {};
  std::shared_ptr<storage::Store> store;  ///< where the arrays' keys resolve
  /// Path below the checkpoint of the `<prefix>_structure.json` of the reference system; empty if
  /// there is none that fits the arrays.
  std::string structure_file = {};

  /// Index of the array with this path; nullopt if there is none.
  std::optional<std::size_t> find(const KeyPath& path) const;
};

/// Are its containers known? Otherwise the tree is nested dicts.
inline bool has_structure(const OpenedPrefix& prefix) {
  return !prefix.foreign || !prefix.manifest.structure.is_null();
}

/// Threading: compatible.
struct Checkpoint {
  std::string path;
  /// "cairn zarr2", "cairn safetensors", "tensorstore index", "safetensors", "zarr2 array", "zarr2
  /// arrays".
  std::string kind;
  std::vector<OpenedPrefix> prefixes;
  std::optional<Record> record;     ///< of ours
  std::string version;              ///< of ours: for check_unchanged()
  std::optional<std::string> mark;  ///< of ours: the text of its metadata.json, of the same commit
  std::string description_file;     ///< for read_description(), below `path`; empty: no directory
  std::vector<std::string> notes;   ///< for a person: torn attempts, what could not be checked

  /// The tree to use: by name, or the one without a name, or the only one. The tree of another
  /// system that has no name may also be named by the first part of its paths; they keep it.
  /// `not_found` (load/prefix-missing) and `invalid_argument` (load/prefix-ambiguous), both with
  /// the list of existing names.
  Result<const OpenedPrefix*> prefix(const std::optional<std::string>& name) const;
};

/// Reason of errors that mean: the checkpoint was saved again or removed since it was opened.
constexpr const char* kReplaced = "checkpoint/replaced";

/// All prefixes, or the named one. Errors of Checkpoint::prefix().
Result<std::vector<const OpenedPrefix*>> select_prefixes(const Checkpoint& checkpoint,
                                                         const std::optional<std::string>& name);
/// Is the leaf one of `keys`, or below one? With no keys, every leaf matches.
bool is_selected(const KeyPath& path, const std::vector<KeyPath>& keys);
/// Paths of arrays, as text, with this beginning. `not_found` (load/key-missing) if there are none.
Result<std::vector<KeyPath>> keys_beginning_with(const OpenedPrefix& prefix,
                                                 const std::string& beginning);

}  // namespace cairn
