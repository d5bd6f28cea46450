// SPDX-License-Identifier: Apache-2.0
// Performs a save of which everything is planned: from memory (save.h) or from another checkpoint
// (convert.h).
#pragma once

#include <string>
#include <vector>

#include "cairn/checkpoint/manifest.h"
#include "cairn/checkpoint/save.h"
#include "cairn/checkpoint/save_plan.h"

namespace cairn::inline checkpoint {

/// One tree on its way: what is known of it before anything is written.
struct PreparedTree {
  std::vector<PlannedArray> arrays;
  Manifest manifest;                     ///< its head: everything but arrays, parts and attempt
  std::vector<std::string> sha256 = {};  ///< of each array, or empty
};

/// How the options say that arrays are stored. `invalid_argument`: save/unknown-layout,
/// save/float-dtype, save/compression-unsupported, save/metadata-not-an-object.
Result<PlanOptions> plan_options(const SaveOptions& options);

/// A manifest with the members that do not depend on the arrays.
Manifest manifest_head(const std::string& prefix, Json structure, const SaveOptions& options,
                       Runtime& runtime);

/// The rest: digests, arrays, manifests, commit. A path that ends in ".safetensors" becomes one
/// bare file.
Result<SaveReport> save_prepared(std::vector<PreparedTree> trees, const std::string& path,
                                 const SaveOptions& options, Runtime& runtime);

}  // namespace cairn::inline checkpoint
