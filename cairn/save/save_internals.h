// SPDX-License-Identifier: Apache-2.0
// What the library itself adds to a save, beside the user's `SaveOptions`: a run, a manager, a save
// in the background, the Python package.
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

/// Called with what the save does from now on, in words such as "writing"; from any thread.
using PhaseSink = std::function<void(std::string_view phase)>;

struct SaveInternals {
  // A run's.
  std::string run_id = {};
  /// Text of the mark `metadata.json`; nothing: none is written and one that is there stays.
  std::optional<std::string> mark = {};
  /// Held from before the decision until all is in place; its error refuses the save. With several
  /// ranks, rank 0's alone.
  CommitGuard guard = {};

  // The Python package's.
  /// Prefixes and the texts of their `<prefix>_structure.json`, by which the reference system loads
  /// a tree with its containers; they come and go with the prefix. zarr2 with an index alone; rank
  /// 0's alone. A prefix without a text here gets one if its tree has no other containers than
  /// dicts, lists, tuples and None: the others only Python's pickles can name.
  std::vector<std::pair<std::string, std::string>> structures = {};
  /// Why this rank has nothing to save after all: the save fails with it, on all ranks.
  std::optional<Error> refusal = {};

  // A manager's, for save_async().
  /// Nothing is written before this save has ended, well or badly; null: nothing to wait for.
  std::shared_ptr<const SaveHandle> after = {};
  /// The caller waits on the handle at once and gets the error there: it is not logged.
  bool waited_for = false;

  // save_async()'s.
  PhaseSink phase = {};
  /// Hash arrays that may change chunk by chunk as they are written, so that the call does not wait
  /// for hashes. Bare files have no room for such digests and are hashed first.
  bool hash_chunks = false;
};

}  // namespace cairn
