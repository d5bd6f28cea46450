// SPDX-License-Identifier: Apache-2.0
// The branch of a run that this job goes on with: each save gets the next number of the run and
// the history of what it goes on from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cairn/run/discovery.h"
#include "cairn/run/ownership.h"

namespace cairn {

/// A save continues from what this job loaded or saved last at a step up to its own; without one,
/// from the latest branch in the directory, up to its step. Threading:
/// confined. Rank 0's alone.
class RunBranch {
 public:
  /// `runtime` must outlive it.
  RunBranch(std::string base, Runtime& runtime) : base_(std::move(base)), runtime_(runtime) {}

  /// This job has loaded a checkpoint of the run.
  void loaded(std::int64_t step, const Lineage& lineage);

  /// For a save of `step` into the directory `name` of the run. Lists the run only where the branch
  /// changes, and then logs the checkpoints left behind (checkpointer/rewound).
  Lineage next(std::int64_t step, const std::string& name, RunOwner& owner);

 private:
  struct Known {
    std::int64_t step = 0;
    Lineage lineage;
  };
  const Known* last_known_until(std::int64_t step) const;
  Lineage branch_off(std::int64_t step, const std::string& name, RunOwner& owner) const;

  const std::string base_;
  Runtime& runtime_;
  std::optional<Known> saved_;  // last, by this job
  std::vector<Known> loaded_;   // since then
};

}  // namespace cairn
