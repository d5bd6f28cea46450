// SPDX-License-Identifier: Apache-2.0
// `Checkpoint`: what lies at a path, opened by its metadata alone. `load/` and `inspect/` read its
// arrays.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/checkpoint/manifest.h"
#include "cairn/checkpoint/record.h"
#include "cairn/checkpoint/runtime.h"
#include "cairn/storage/store.h"
#include "cairn/tree/value.h"

namespace cairn::inline checkpoint {

/// One tree of an opened checkpoint. Threading: compatible.
struct OpenedPrefix {
  std::string name;       ///< "" for a tree without a prefix
  bool any_name = false;  ///< it is the only one, whatever it is asked for as
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

/// Opens a checkpoint directory (ours, the reference system's, bare zarr v2 arrays), one array
/// directory, a
/// `.safetensors` file, its index, or a folder with parts. Reads metadata only; follows symbolic
/// links; takes no lock and needs no write permission. `not_found` (checkpoint/not-found),
/// `failed_precondition` (checkpoint/not-a-checkpoint, with what was looked for), `corrupt` and
/// `unimplemented` as the parsers say. A commit that goes on meanwhile is waited out.
Result<Checkpoint> open_checkpoint(const std::string& path, Runtime& runtime);

/// `unavailable` (kReplaced) if it was saved again or removed since it was opened. Checkpoints of
/// other systems always pass: nothing in them tells.
Result<void> check_unchanged(const Checkpoint& checkpoint, Runtime& runtime);
/// Why reading an opened checkpoint failed: check_unchanged() says why what is there now reads as
/// missing or damaged; otherwise `error` does.
Error explain_failure(const Error& error, const Checkpoint& checkpoint, Runtime& runtime);

/// The text of checkpoint_metadata.json, of the commit that was opened; nullopt: there is none.
/// `unavailable` (kReplaced) as check_unchanged(); otherwise as Store::open().
Result<std::optional<std::string>> read_description(const Checkpoint& checkpoint, Runtime& runtime);

constexpr const char* kReplaced = "checkpoint/replaced";
/// How often a checkpoint is opened again at most because it was replaced while it was read.
constexpr int kMostReopenings = 100;

/// `read(opened)`. If that fails because the checkpoint was replaced meanwhile, opens the new one
/// and reads that instead.
template <typename Read>
std::invoke_result_t<const Read&, const Checkpoint&> read_settled(const Checkpoint& opened,
                                                                  Runtime& runtime,
                                                                  const Read& read) {
  auto answer = read(opened);
  Checkpoint later;
  const Checkpoint* current = &opened;
  for (int reopened = 0; !answer; ++reopened) {
    const Error why = explain_failure(answer.error(), *current, runtime);
    if (why.reason() != kReplaced || reopened == kMostReopenings) return why;
    CAIRN_TRY_ASSIGN(later, open_checkpoint(opened.path, runtime));
    current = &later;
    answer = read(later);
  }
  return answer;
}

/// All prefixes, or the one that is named. Errors of Checkpoint::prefix().
Result<std::vector<const OpenedPrefix*>> select_prefixes(const Checkpoint& checkpoint,
                                                         const std::optional<std::string>& name);
/// Is the leaf one of `keys`, or below one? All are where there are none.
bool is_selected(const KeyPath& path, const std::vector<KeyPath>& keys);

}  // namespace cairn::inline checkpoint
