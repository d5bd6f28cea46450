// SPDX-License-Identifier: Apache-2.0
// Matches a template with a checkpoint: which arrays are read into which memory, and what differs.
#pragma once

#include <vector>

#include "cairn/load/load_target.h"

namespace cairn {

struct TemplateMatch {
  std::vector<std::size_t> which;          ///< arrays of the prefix
  std::vector<ShardedArray> destinations;  ///< in the stored shape
  std::vector<Leaf> leaves;  ///< the result's, in the template's order; share the memory above

  /// The template's structure with these leaves.
  Result<Tree> build(const Tree& like) &&;
};

/// `failed_precondition` (load/missing-array, load/shape-mismatch, load/dtype-mismatch) in strict
/// mode, with every leaf; otherwise the report lists them. REQUIRES: options.like is set.
Result<TemplateMatch> match_template(const OpenedPrefix& prefix, const LoadOptions& options,
                                     const LoadTarget& target, int rank, LoadReport& report);

}  // namespace cairn
