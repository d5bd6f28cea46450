// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: which there are, which are of a branch that the run left, and which is
// the latest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/base/uri.h"
#include "cairn/layout/checkpoint.h"
#include "cairn/run/lineage.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// A directory that holds a mark (`metadata.json`), a record (`cairn.json`) or the reference
/// system's index.
struct RunEntry {
  std::string path;  ///< as users write it: a path, or a URL
  std::string name;  ///< last component of the path
  std::optional<std::int64_t> step;
  std::string timestamp;            ///< as written; may be empty
  std::optional<Clock::Wall> time;  ///< the same as an instant, where it can be read
  bool is_temporary = false;
  bool marked = false;  ///< has a mark: a run's checkpoint, which discovery may take
  bool torn = false;    ///< an unfinished save lies in it
  bool busy = false;    ///< a writer that lives saves into it
  bool ours = false;    ///< has a record of ours: rules remove nothing without one
  bool pinned = false;
  bool link = false;  ///< a symbolic link in the run directory
  /// What its mark says of its place in the run; place() says whether that counts here.
  std::optional<Lineage> lineage;
  /// The run went back to an earlier step and saved again: listed last, and never the latest. Known
  /// by the numbers of saves; without a number by time: a later save of the run has a lower step.
  bool abandoned = false;
  std::string run_id;   ///< of the run that saved it; empty: not known
  Json extra;           ///< the other members of its mark: an object, or null
  std::string problem;  ///< why it cannot be used; empty: no problem seen
  std::string damage;   ///< what a load found wrong with it (damage_note.h); empty: nothing

  /// Where it stands among the saves of this run. Null: a job of Cairn did not save it as one of a
  /// run, or it is a copy under another name or a link, which say nothing about this run.
  const Lineage* place() const {
    return lineage && lineage->name == name && !link ? &*lineage : nullptr;
  }
  /// A job saved it as one of its run, under the name that it has: rules remove only such,
  /// and count only such.
  bool is_of_run() const { return ours && place() != nullptr; }
};

/// The base and its direct children that are checkpoints, newest first: by step, then by place,
/// instant and name; abandoned ones after all others. Damaged ones are listed with their problem.
/// `not_found` if the base does not exist.
Result<std::vector<RunEntry>> list_run(const std::string& base, Runtime& runtime);

/// Why the checkpoint cannot be loaded: its `problem`, or what opening it and looking for its files
/// shows. Empty: it can.
std::string find_problem(const RunEntry& entry, Runtime& runtime);

/// Are all files there that the checkpoint's metadata name? Does not open them. `corrupt`
/// (discovery/missing-files), with the first that is missing. Writers that leave out chunks of
/// zeros (TensorStore before 0.1.68) cannot be told from a loss, and count as one.
Result<void> check_files(const Checkpoint& checkpoint, Runtime& runtime);

/// The branch of the newest save: the place with the highest number. Null: none has a number.
const Lineage* latest_branch(const std::vector<RunEntry>& entries);

/// Path of the newest marked checkpoint that opens and is whole, of those after `older_than` if
/// that is given; nothing if there is none or the base does not exist. Abandoned ones are never
/// taken. The log names what was skipped (discovery/skipped, discovery/abandoned); where there is
/// nothing to take, checkpoints without a mark (discovery/unmarked); and a latest one that another
/// run saved than the one that owned the directory last (discovery/other-run).
Result<std::optional<std::string>> find_latest_checkpoint(
    const std::string& base, Runtime& runtime,
    const std::optional<std::string>& older_than = std::nullopt);

}  // namespace cairn
