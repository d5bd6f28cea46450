// SPDX-License-Identifier: Apache-2.0
// Where the arrays of a load go: who is to hold which box of which.
#pragma once

#include <optional>
#include <vector>

#include "cairn/load/load_options.h"

namespace cairn {

/// A key path as rules, shardings and callbacks see it.
KeyPath seen_path(const OpenedPrefix& prefix, const KeyPath& path, const LoadOptions& options);

/// The shardings that a load's options ask for. Keeps pointers to both; threading: compatible.
class LoadTarget {
 public:
  /// `invalid_argument`: load/no-mesh, and what rules say; what the chooser says.
  static Result<LoadTarget> make(const OpenedPrefix& prefix, const LoadOptions& options);

  /// Of one array of the prefix; `like` is what the template has in its place, or null. Errors name
  /// the leaf: `invalid_argument` (load/no-sharding) and what Sharding::check says.
  Result<Sharding> sharding_of(std::size_t array, const ShardedArray* like) const;

 private:
  LoadTarget(const OpenedPrefix& prefix, const LoadOptions& options)
      : prefix_(&prefix), options_(&options) {}
  Result<Sharding> choose(std::size_t array, const ShardedArray* like) const;

  const OpenedPrefix* prefix_;
  const LoadOptions* options_;
  std::vector<std::optional<Sharding>> chosen_;        // of each array; empty: there is no chooser
  std::vector<std::optional<PartitionSpec>> by_rule_;  // of each array; none where nobody asks
};

}  // namespace cairn
