// SPDX-License-Identifier: Apache-2.0
// Trees before anything is written: checked, planned, with the head of their manifest.
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

/// One tree of a save, before anything is written.
struct PreparedTree {
  std::vector<PlannedArray> arrays;
  Manifest manifest;  ///< its head: everything but arrays, parts and attempt
  std::optional<std::string> structure_text = {};        ///< of SaveInternals::structures
  std::vector<std::optional<Sha256Digest>> sha256 = {};  ///< of arrays hashed whole on this rank
};

/// Can this many trees be saved there? `invalid_argument` (save/one-tree), `unimplemented`
/// (save/store-unsupported).
Result<void> check_path(const std::string& path, std::size_t trees);

/// How arrays are stored, by the options. `invalid_argument`: save/unknown-layout,
/// save/float-dtype, save/compression-unsupported, save/metadata-not-an-object.
Result<PlanOptions> plan_options(const SaveOptions& options);

/// A manifest with the members that do not depend on the arrays.
Manifest manifest_head(const std::string& prefix, Json structure, const SaveOptions& options,
                       Runtime& runtime);

/// The trees of a save to `path`, by one or more ranks. Returns SaveInternals::refusal first if it
/// is set. Errors of the functions above, of flatten(), plan_arrays() and structure_to_json(), with
/// the prefix; `invalid_argument` (save/one-process).
Result<std::vector<PreparedTree>> prepare_trees(const std::vector<NamedTree>& trees,
                                                const std::string& path, const SaveOptions& options,
                                                const SaveInternals& internals, Runtime& runtime);

}  // namespace cairn
