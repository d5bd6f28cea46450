// SPDX-License-Identifier: Apache-2.0
// What a caller asks of the checkpoints of a run.
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

/// Gets the checkpoint's path, the mesh that on_step() was given, and what its mark says.
using CheckpointCallback = std::function<Result<void>(const std::string& destination,
                                                      const Mesh* mesh, const Json& metadata)>;

struct CheckpointerOptions {
  std::string base_path = {};  ///< the run directory; checkpoints are run-<step> in it
  /// Time between temporary saves; nothing: there are none.
  std::optional<std::chrono::nanoseconds> save_interval = {};
  std::vector<CheckpointInterval> step_policies = {};
  /// The time that the policies go by, asked before on_step() and saves return; empty: that of the
  /// manager's runtime.
  std::function<Clock::Wall()> now = {};
  /// What saves and loads; null: one with default options.
  std::shared_ptr<AsyncCheckpointManager> manager = {};
  /// After the first save, temporary checkpoints and torn saves of earlier runs are removed.
  bool delete_old_temp_checkpoints = true;
  RetentionRules retention = {};  ///< applied after each save
  std::string run_id = {};        ///< empty: that of the checkpoint that was loaded, or a new one
  bool take_over = false;         ///< from a job that owns the run and lives
  /// Looks every second whether somebody asks for a save (save_request.h).
  bool watch_requests = true;
  /// Signals that ask for a save, if the program wants that. After one that asks to stop, the save
  /// is waited for, as long as `stop_timeout` says, before on_step() returns. They may come to any
  /// rank: all have signals, or none.
  std::shared_ptr<SignalWatch> signals = {};
  std::chrono::nanoseconds stop_timeout = std::chrono::minutes(10);
  /// How much of the time several ranks may spend on agreeing at steps that save nothing: they
  /// agree at fewer of them where that takes long, but after 50 at most. 1: at every step.
  double agreement_share = 0.02;
  /// A file that says in Prometheus' text format what saves do (metrics.h); empty: none.
  std::string metrics_path = {};
};

struct StepOptions {
  bool force = false;  ///< save, permanently
  const Mesh* mesh = nullptr;
  /// With trees: called once after the commit, in the background, on every rank. Without: called
  /// before on_step() returns, and do the whole save themselves.
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
  /// If the latest turns out corrupt, take the next older good one; notes and log say which were
  /// passed over, and why.
  bool fallback = false;
  /// load_pytree(): the tree as it was saved; false: nested dicts with text keys, unless
  /// `load.like` gives a structure, and keys without the prefix.
  bool load_treedef = true;
  /// load_pytree(): nothing there is an error; false: an empty answer.
  bool discover_raise = true;
};

}  // namespace cairn
