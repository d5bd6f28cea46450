// SPDX-License-Identifier: Apache-2.0
// `Checkpointer`: the checkpoints of a training run. It is asked at every step and saves when it is
// time, in the background; finds the latest; removes what nobody needs any more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/manager/checkpointer_options.h"

namespace cairn {

/// Threading: confined, but for what wait and check do; with several ranks the same calls on all of
/// them. Destroyed with saves on their way: they go on, callbacks and removals included.
class Checkpointer {
 public:
  /// `invalid_argument` as SavePolicy::make() and check_rules(), and checkpointer/agreement-share.
  /// Reads nothing, writes nothing.
  static Result<std::unique_ptr<Checkpointer>> make(CheckpointerOptions options,
                                                    std::shared_ptr<Runtime> runtime);
  virtual ~Checkpointer() = default;

  /// Called when there is something to save, before on_step() returns.
  using Trees = std::function<Result<std::vector<NamedTree>>()>;
  using OneTree = std::function<Result<Tree>()>;  ///< without a prefix

  /// Saves if it is time; nothing: it was not. Rank 0 decides for all, with its clock. Several
  /// ranks agree on that where it is forced or the intervals say so, on all of them alike, and
  /// otherwise now and then (`agreement_share`, StepSchedule): saves by the clock, requests,
  /// signals and errors of earlier saves are noticed then: at most 50 steps later, and about 5
  /// seconds at the pace so far. The error of an earlier save is the answer here if nobody has
  /// heard of it yet. The first save takes the run directory: `failed_precondition` (run/owned)
  /// with host, process and time of the job that has it; after a take-over, run/taken-over.
  ///
  /// `internals`, here and below, is for the library itself (save/save_internals.h); here it is
  /// read when `trees` has returned.
  virtual Result<std::optional<SaveHandle>> on_step(std::int64_t step, const Trees& trees,
                                                    const StepOptions& options = {},
                                                    const SaveInternals* internals = nullptr) = 0;
  Result<std::optional<SaveHandle>> on_step(std::int64_t step, const OneTree& tree,
                                            const StepOptions& options = {});
  Result<std::optional<SaveHandle>> on_step(std::int64_t step, const Tree& tree,
                                            const StepOptions& options = {});
  /// Without a tree: the callbacks save. What they began is durable when it returns, and the mark
  /// is written. If they changed no file in the checkpoint's directory, the log says so
  /// (checkpointer/nothing-saved): nothing is marked, and nothing removed.
  Result<std::optional<SaveHandle>> on_step(std::int64_t step, const StepOptions& options);

  /// Would on_step() save? Does what a step that saves nothing does, and waits for nothing. True
  /// also where several ranks must ask each other.
  virtual Result<bool> is_time(std::int64_t step, bool force = false) = 0;

  /// Into `destination` of the run directory, whatever the policies say; they take note of it. An
  /// absolute path, which may have links and ".." in it, that leads elsewhere or to the run
  /// directory itself, gets a checkpoint with a mark that is none of the run: nothing is removed
  /// for its sake.
  virtual Result<SaveHandle> save_checkpoint(const Tree& tree, const std::string& destination,
                                             const SaveCheckpointOptions& options = {},
                                             const SaveInternals* internals = nullptr) = 0;
  /// With a step: as save_checkpoint(), into `destination` or run-<step>. Without: into the path
  /// `destination`, or the run directory itself, and without a mark.
  virtual Result<SaveHandle> save_pytree(const Tree& tree, const std::string& destination,
                                         const SaveCheckpointOptions& options,
                                         const SaveInternals* internals = nullptr) = 0;

  /// The latest, or one that is named. `not_found` (run/no-checkpoint); `corrupt`
  /// (run/no-good-checkpoint) if there are some, and none of them can be taken. The mark's members
  /// are added to `extras` where it has none of the same name.
  virtual Result<Loaded> load_checkpoint(const LoadCheckpointOptions& options = {}) = 0;
  /// The same for a program that may be at its first start: nothing if the run has no checkpoint
  /// yet. Whatever else goes wrong is an error, damaged checkpoints included.
  virtual Result<std::optional<Loaded>> load_checkpoint_if_any(
      const LoadCheckpointOptions& options = {}) = 0;
  /// load_checkpoint() with load_pytree()'s meaning of keys; needs a prefix. Nothing there and
  /// `discover_raise` false: falls back to the run directory itself, or nothing.
  virtual Result<std::optional<Loaded>> load_pytree(const LoadCheckpointOptions& options) = 0;

  /// Hidden when it returns, with all that others put into it; its bytes go in the background.
  /// Errors of remove_checkpoint().
  virtual Result<void> queue_checkpoint_removal(const std::string& path) = 0;

  /// All saves are committed, callbacks have returned, and what was to be removed is.
  virtual Result<void> wait_until_finished() = 0;
  virtual Result<void> check_for_errors() = 0;

  /// A signal asked one of the ranks to stop, and on_step() has saved: leave the loop.
  virtual bool should_stop() const = 0;

  virtual AsyncCheckpointManager& manager() = 0;
  virtual SavePolicy& policy() = 0;
};

}  // namespace cairn
