// SPDX-License-Identifier: Apache-2.0
// Decides where the arrays of a load go: which rank holds which box of each.
#pragma once

#include <optional>
#include <vector>

#include "cairn/load/load_options.h"

namespace cairn {

/// The shardings that the options of a load ask for. Keeps pointers to both; threading: compatible.
class LoadTarget {
 public:
  /// `invalid_argument`: load/no-mesh, load/unnamed-leaves, and what rules say; what the chooser
  /// says.
  static Result<LoadTarget> make(const OpenedPrefix& prefix, const LoadOptions& options);

  /// Arrays of the prefix that the options select.
  const std::vector<std::size_t>& selected() const { return selected_; }

  /// Of one array; `like` is its counterpart in the template, or null. Errors name the leaf:
  /// `invalid_argument` (load/no-sharding) and those of Sharding::check.
  Result<Sharding> sharding_of(std::size_t array, const ShardedArray* like) const;
  /// The same of several, without a template; the error lists all leaves.
  Result<std::vector<Sharding>> shardings_of(const std::vector<std::size_t>& arrays) const;

 private:
  LoadTarget(const OpenedPrefix& prefix, const LoadOptions& options);
  const KeyPath& path(std::size_t array) const { return prefix_->manifest.arrays[array].path; }
  Result<void> take_wishes();
  Result<void> check_all_named() const;
  Result<void> ask_rules();
  Result<Sharding> on_mesh(const PartitionSpec& spec) const;  ///< REQUIRES: options.mesh
  bool is_replicated(const ManifestArray& array) const;
  Result<Sharding> choose(std::size_t array, const ShardedArray* like) const;

  const OpenedPrefix* prefix_;
  const LoadOptions* options_;
  std::vector<std::size_t> selected_;
  std::vector<std::optional<Sharding>> given_;  // of each array, by the chooser and `shardings`
  std::vector<std::optional<PartitionSpec>> by_rule_;  // of each array; none where nobody asks
};

}  // namespace cairn
