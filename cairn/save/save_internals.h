// SPDX-License-Identifier: Apache-2.0
// What the library itself adds to a save, besides the `SaveOptions` of the user: for a run, a
// manager, a save in the background, the Python package.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/base/result.h"
#include "cairn/commit/commit_guard.h"

namespace cairn {

class SaveHandle;

/// Called with the new phase of the save, in words such as "writing"; from any thread.
using PhaseSink = std::function<void(std::string_view phase)>;

struct SaveInternals {
  // A run's.
  std::string run_id = {};
  /// Text of the mark `metadata.json`; nullopt: write none and keep an existing one.
  std::optional<std::string> mark = {};
  /// Held from before the decision until everything is in place; its error refuses the save. With
  /// several ranks only that of rank 0 is used.
  CommitGuard guard = {};

  // The Python package's.
  /// Prefixes and the texts of their `<prefix>_structure.json`, with which the reference system
  /// loads a tree with its containers; they are replaced and removed with the prefix. For zarr2
  /// with an index only, and from rank 0 only. A prefix without a text here gets one if its
  /// containers are all dicts, lists, tuples and None; only pickles of Python can name other
  /// containers.
  std::vector<std::pair<std::string, std::string>> structures = {};
  /// An error that this rank has found already: the save fails with it, on all ranks.
  std::optional<Error> refusal = {};

  // A manager's, for save_async().
  /// Nothing is written until this save has ended, with or without success; null: do not wait.
  std::shared_ptr<const SaveHandle> after = {};
  /// The caller waits on the handle at once and gets the error there, so it is not logged.
  bool waited_for = false;

  // save_async()'s.
  PhaseSink phase = {};
  /// Hash arrays that may change chunk by chunk while they are written, so that the call does not
  /// wait for hashes. Bare files cannot store such digests, so they are hashed first.
  bool hash_chunks = false;
};

}  // namespace cairn
