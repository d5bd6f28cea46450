// SPDX-License-Identifier: Apache-2.0
// The state of the training: what is saved, and how it lies on the ranks. Each rank holds one box
// of each parameter and of Adam's moments for it, and no rank ever saves or loads more than that.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cairn/cairn.h"
#include "cairn/coord/coordinator.h"
#include "examples/training/model.h"

namespace training {

using Shards = std::map<std::string, cairn::ShardedArray>;

struct State {
  std::int64_t step = 0;  ///< updates that were made
  Shards parameters;
  Shards mean;      ///< Adam's first moment
  Shards variance;  ///< and its second
};

/// Names the members; with this Cairn makes a tree of the struct, and a struct of a tree.
template <typename Visitor>
void cairn_visit(Visitor& v, State& state) {
  v("step", state.step);
  v("parameters", state.parameters);
  v("mean", state.mean);
  v("variance", state.variance);
}

/// Which rank this is, and where things lie on the ranks. One device a rank.
struct Job {
  cairn::coord::Coordinator& ranks;
  cairn::Mesh mesh;
  cairn::PartitionRules rules;
};

/// Rows over the axis "fsdp", columns over "tp"; moments lie as their parameters do, because the
/// last part of the key path is the same. The mesh says how many parts that makes.
cairn::Result<cairn::PartitionRules> partition_rules();

/// Step 0: this rank's boxes of the initial parameters, and moments of zero.
cairn::Result<State> initial_state(cairn::Index hidden, const Job& job);

/// One step on the whole batch: all ranks call it together. Returns the mean loss before it.
cairn::Result<float> train_step(State& state, const Job& job);

}  // namespace training
