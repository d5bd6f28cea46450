// SPDX-License-Identifier: Apache-2.0
// `Checkpointer`: the checkpoints of a training run. Call it at every step: it saves in the
// background when it is time, finds the latest checkpoint, and removes those no longer needed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/manager/checkpointer_options.h"

namespace cairn {

/// Threading: confined, except for waiting and checking; with several ranks, the same calls on all
/// ranks. Destroying it stops neither saves nor their callbacks and removals.
class Checkpointer {
 public:
  /// `invalid_argument` as SavePolicy::make() and check_rules(), and checkpointer/agreement-share.
  /// Reads nothing, writes nothing.
  static Result<std::unique_ptr<Checkpointer>> make(CheckpointerOptions options,
                                                    std::shared_ptr<Runtime> runtime);
  virtual ~Checkpointer() = default;

  /// Called only if a save is due, before on_step() returns.
  using Trees = std::function<Result<std::vector<NamedTree>>()>;
  using OneTree = std::function<Result<Tree>()>;  ///< without a prefix

  /// Saves if it is time; returns nothing if not. Rank 0 decides for all ranks, by its clock. Ranks
  /// always agree at forced steps and at those of the step intervals, and at some steps between
  /// (`agreement_share`, StepSchedule). What rank 0 alone knows takes effect at the next agreement:
  /// saves by the clock, requests, signals, errors of earlier saves. That is at most 50 steps
  /// later, and about 5 seconds at the current pace. Returns the error of an earlier save if no
  /// call has returned it yet. The first save takes the run directory: `failed_precondition`
  /// (run/owned) with host, process and time of the job that owns it; after a take-over,
  /// run/taken-over.
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
  /// Without a tree: the callbacks save. When it returns, their saves are durable and the mark is
  /// written. If they changed no file in the checkpoint's directory, it logs
  /// checkpointer/nothing-saved, marks nothing and removes nothing.
  Result<std::optional<SaveHandle>> on_step(std::int64_t step, const StepOptions& options);

  /// Would on_step() save? Never waits. Also true if the ranks must agree at this step.
  virtual Result<bool> is_time(std::int64_t step, bool force = false) = 0;

  /// Saves into `destination` in the run directory, independent of the policies, which count it. If
  /// `destination` is an absolute path outside of the run directory, or the run directory itself
  /// (links and ".." are resolved), the checkpoint is not part of the run, and no checkpoint is
  /// removed because of it.
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
  /// The same for a job that may start for the first time: returns nothing if the run has no
  /// checkpoint yet. Everything else is an error, damaged checkpoints included.
  virtual Result<std::optional<Loaded>> load_checkpoint_if_any(
      const LoadCheckpointOptions& options = {}) = 0;
  /// load_checkpoint() with load_pytree()'s meaning of keys; needs a prefix. Nothing there and
  /// `discover_raise` false: falls back to the run directory itself, or nothing.
  virtual Result<std::optional<Loaded>> load_pytree(const LoadCheckpointOptions& options) = 0;

  /// No reader finds it after the return, nor what others put into it; its bytes are deleted in the
  /// background. Errors of remove_checkpoint().
  virtual Result<void> queue_checkpoint_removal(const std::string& path) = 0;

  /// Waits until all saves are committed, callbacks have returned and removals are done.
  virtual Result<void> wait_until_finished() = 0;
  virtual Result<void> check_for_errors() = 0;

  /// A signal asked one of the ranks to stop, and on_step() has saved: leave the loop.
  virtual bool should_stop() const = 0;

  virtual AsyncCheckpointManager& manager() = 0;
  virtual SavePolicy& policy() = 0;
};

}  // namespace cairn
