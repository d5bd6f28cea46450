// SPDX-License-Identifier: Apache-2.0
// Trees as they are before anything is written: checked, planned, with the head of their manifest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cairn/base/sha256.h"
#include "cairn/manifest/manifest.h"
#include "cairn/runtime/runtime.h"
#include "cairn/save/save_internals.h"
#include "cairn/save/save_options.h"
#include "cairn/save/save_plan.h"

namespace cairn {

/// One tree on its way: what is known of it before anything is written.
struct PreparedTree {
  std::vector<PlannedArray> arrays;
  Manifest manifest;  ///< its head: everything but arrays, parts and attempt
  std::optional<std::string> structure_text = {};        ///< of SaveInternals::structures
  std::vector<std::optional<Sha256Digest>> sha256 = {};  ///< of arrays that are hashed whole, here
};

/// Can this many trees be saved there? `invalid_argument` (save/one-tree), `unimplemented`
/// (save/store-unsupported).
Result<void> check_path(const std::string& path, std::size_t trees);

/// How the options say that arrays are stored. `invalid_argument`: save/unknown-layout,
/// save/float-dtype, save/compression-unsupported, save/metadata-not-an-object.
Result<PlanOptions> plan_options(const SaveOptions& options);

/// A manifest with the members that do not depend on the arrays.
Manifest manifest_head(const std::string& prefix, Json structure, const SaveOptions& options,
                       Runtime& runtime);

/// The trees of a save into `path`, by one of however many ranks. SaveInternals::refusal comes
/// first. Errors of the above, of flatten(), plan_arrays() and structure_to_json(), with the
/// prefix; `invalid_argument` (save/one-process).
Result<std::vector<PreparedTree>> prepare_trees(const std::vector<NamedTree>& trees,
                                                const std::string& path, const SaveOptions& options,
                                                const SaveInternals& internals, Runtime& runtime);

}  // namespace cairn
