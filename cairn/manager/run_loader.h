// SPDX-License-Identifier: Apache-2.0
// How a run resumes: all ranks load the same latest checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cairn/manager/checkpointer_options.h"
#include "cairn/manager/run_branch.h"
#include "cairn/run/mark.h"

namespace cairn {

/// Tells `branch` what it loads of the run; `branch` must outlive the loader. With several ranks,
/// every rank makes the same calls, and rank 0 does the looking. Threading: confined.
class RunLoader {
 public:
  RunLoader(std::string base, std::shared_ptr<AsyncCheckpointManager> manager, RunBranch& branch)
      : base_(std::move(base)),
        manager_(std::move(manager)),
        runtime_(*manager_->runtime()),
        branch_(branch) {}

  /// Nothing if there is no good checkpoint; `corrupt` (run/no-good-checkpoint) if all fallbacks
  /// are damaged too. `with_prefix`: keys as in load_pytree().
  Result<std::optional<Loaded>> load(const LoadCheckpointOptions& options, bool with_prefix);

  /// Checkpointer::load_pytree().
  Result<std::optional<Loaded>> load_pytree(const LoadCheckpointOptions& options);

  /// After load() has found nothing: an error (run/no-good-checkpoint) if there are checkpoints
  /// after all. What is left of a save that did not finish is none.
  Result<void> check_for_bad_ones(const LoadCheckpointOptions& options);

  Error no_checkpoint(const LoadCheckpointOptions& options) const;

  /// Id of the run that saved what was loaded last; empty: unknown.
  const std::string& run_id() const { return run_id_; }

 private:
  const std::string& root_of(const LoadCheckpointOptions& options) const {
    return options.path.empty() ? base_ : options.path;
  }
  Result<std::optional<Loaded>> find_pytree(const LoadCheckpointOptions& options);
  Result<std::string> latest(const std::string& root, const std::optional<std::string>& before);
  std::optional<std::string> mark_in_place(const std::string& path) const;
  void note_place(const std::string& path, const Mark& mark);
  void remember(const std::string& path, const Error& error) const;
  Result<Loaded> load_one(const std::string& path, const LoadOptions& options, bool with_prefix);

  const std::string base_;
  const std::shared_ptr<AsyncCheckpointManager> manager_;
  Runtime& runtime_;
  RunBranch& branch_;
  std::string run_id_;
};

}  // namespace cairn
