// SPDX-License-Identifier: Apache-2.0
// Options of a run's checkpoints.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/manager/async_manager.h"
#include "cairn/manager/save_policy.h"
#include "cairn/manager/signal_watch.h"
#include "cairn/run/retention.h"

namespace cairn {

/// Called with the checkpoint's path, the mesh given to on_step(), and its mark.
using CheckpointCallback = std::function<Result<void>(const std::string& destination,
                                                      const Mesh* mesh, const Json& metadata)>;

struct CheckpointerOptions {
  std::string base_path = {};  ///< the run directory; checkpoints are run-<step> in it
  /// Time between temporary saves; nothing: there are none.
  std::optional<std::chrono::nanoseconds> save_interval = {};
  std::vector<CheckpointInterval> step_policies = {};
  /// Clock of the policies, read before on_step() and saves return; empty: the clock of the
  /// manager's runtime.
  std::function<Clock::Wall()> now = {};
  /// Does the saves and loads; null: a manager with default options.
  std::shared_ptr<AsyncCheckpointManager> manager = {};
  /// Remove temporary checkpoints and torn saves of earlier runs after the first save.
  bool delete_old_temp_checkpoints = true;
  RetentionRules retention = {};  ///< applied after each save
  std::string run_id = {};        ///< empty: that of the checkpoint that was loaded, or a new one
  bool take_over = false;         ///< even from a live job that owns the run
  /// Check every second for a request to save (save_request.h).
  bool watch_requests = true;
  /// Signals that trigger a save. After a stop signal, on_step() waits for the save, at most
  /// `stop_timeout`. A signal to one rank is enough; set the same signals on all ranks, or none.
  std::shared_ptr<SignalWatch> signals = {};
  std::chrono::nanoseconds stop_timeout = std::chrono::minutes(10);
  /// Maximum share of wall time that several ranks spend on agreeing at steps that save nothing. If
  /// agreeing is slow, they do it at fewer steps, but at least every 50. 1: at every step.
  double agreement_share = 0.02;
  /// File for metrics of saves, in Prometheus' text format (metrics.h); empty: none.
  std::string metrics_path = {};
};

struct StepOptions {
  bool force = false;  ///< save, permanently
  const Mesh* mesh = nullptr;
  /// With trees: called in the background on every rank, once, after the commit. Without trees:
  /// called before on_step() returns, and do the whole save.
  std::vector<CheckpointCallback> true_callbacks = {};
  /// An object of numbers, or null; what RetentionRules::best_k looks at.
  Json metrics = {};
  /// As SaveTreeOptions::save. `step` and `metadata` are the run's; the mark has `extras` too.
  SaveOptions save = {};
};

struct SaveCheckpointOptions {
  /// As SaveTreeOptions::save. `metadata` is the run's; the mark has `extras` too.
  SaveOptions save = {};
  bool is_temporary = false;
  std::string prefix = {};
  bool structured = false;  ///< needs a prefix
  /// Stored with arrays that lie on no mesh, as the default of later loads: they become
  /// SaveOptions::mesh and wishes, by wished_specs().
  std::optional<Mesh> mesh = {};
  const ShardingTree* shardings = nullptr;
  const PartitionRules* partition_rules = nullptr;
  Json metrics = {};  ///< StepOptions::metrics
};

struct LoadCheckpointOptions {
  LoadOptions load = {};
  std::string path = {};        ///< empty: the run directory
  bool discover_latest = true;  ///< false: the path itself is the checkpoint
  /// The tree as it was saved; needs a prefix. See load_pytree() of the manager for keys.
  bool structured = false;
  /// If the latest is corrupt, load the newest good one before it. Notes and log name those
  /// skipped, and why.
  bool fallback = false;
  /// load_pytree(): the tree as it was saved; false: nested dicts with text keys, unless
  /// `load.like` gives a structure, and keys without the prefix.
  bool load_treedef = true;
  /// load_pytree(): nothing there is an error; false: an empty answer.
  bool discover_raise = true;
};

}  // namespace cairn
