// SPDX-License-Identifier: Apache-2.0
// `Checkpoint`: what lies at a path, opened by its metadata alone. `load/` and `inspect/` read its
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
  /// A checkpoint of another system has no structure (null) and no sums; the rest is filled in from
  /// its own metadata.
  Manifest manifest;
  bool foreign = false;
  std::vector<std::string> names;  ///< of each array as stored: directory or tensor name
  std::vector<std::pair<KeyPath, Value>> values;  ///< leaves that are not arrays
  /// For a person: what could not be made out of its containers and values. Loads log them.
  std::vector<std::string> notes = {};
  std::shared_ptr<storage::Store> store;  ///< where the arrays' keys resolve
  /// `<prefix>_structure.json` of the reference system, below the checkpoint; empty: there is none
  /// that fits the arrays.
  std::string structure_file = {};

  /// Index of the array with this path; nothing if there is none.
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

  /// The one that is meant: by name, or the one without a name, or the only one. Of another
  /// system's tree without a name, the name may also be what its paths begin with; they keep it.
  /// `not_found` (load/prefix-missing) and `invalid_argument` (load/prefix-ambiguous), both with
  /// the list of those there.
  Result<const OpenedPrefix*> prefix(const std::optional<std::string>& name) const;
};

/// The reason of an error that says: it was saved again or removed since it was opened.
constexpr const char* kReplaced = "checkpoint/replaced";

/// All prefixes, or the one that is named. Errors of Checkpoint::prefix().
Result<std::vector<const OpenedPrefix*>> select_prefixes(const Checkpoint& checkpoint,
                                                         const std::optional<std::string>& name);
/// Is the leaf one of `keys`, or below one? With no keys, every leaf matches.
bool is_selected(const KeyPath& path, const std::vector<KeyPath>& keys);
/// Paths of arrays, as text, with this beginning. `not_found` (load/key-missing): there are none.
Result<std::vector<KeyPath>> keys_beginning_with(const OpenedPrefix& prefix,
                                                 const std::string& beginning);

}  // namespace cairn
