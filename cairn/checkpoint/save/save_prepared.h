// SPDX-License-Identifier: Apache-2.0
// Performs a save of which everything is planned: from memory (save.h) or from another checkpoint
// (convert.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/checkpoint/commit/commit.h"
#include "cairn/checkpoint/layout/array_writer.h"
#include "cairn/checkpoint/manifest.h"
#include "cairn/checkpoint/save/save.h"
#include "cairn/checkpoint/save/save_plan.h"

namespace cairn::inline checkpoint {

/// One tree on its way: what is known of it before anything is written.
struct PreparedTree {
  std::vector<PlannedArray> arrays;
  Manifest manifest;                     ///< its head: everything but arrays, parts and attempt
  std::vector<std::string> sha256 = {};  ///< of each array, or empty
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

// The steps of a save, each for all of its trees. ---------------------------------------------

AttemptOptions attempt_options(const std::vector<PreparedTree>& trees, const SaveOptions& options,
                               int ranks);

/// SHA-256 of the arrays that are whole here.
Result<void> hash_trees(std::vector<PreparedTree>& trees, Runtime& runtime);

using Writers = std::vector<std::unique_ptr<ArrayWriter>>;
struct WriterPlace {
  storage::Store* data = nullptr;
  storage::Store* pieces = nullptr;  ///< with several ranks
};
Result<Writers> make_writers(const std::vector<PreparedTree>& trees, const WriterPlace& place,
                             const SaveOptions& options, Runtime& runtime);

using JobsOf = const std::vector<WriteJob>& (ArrayWriter::*)() const;
Result<void> write_jobs(const Writers& writers, JobsOf which, const ProgressSink& progress,
                        Runtime& runtime);

using SumsByPrefix = std::vector<std::vector<SummedRange>>;
Result<SumsByPrefix> take_sums(const Writers& writers);

/// Manifests and what the arrays have in common, written and durable: ready for the commit.
struct FinishedTrees {
  CommitRequest request;
  SaveReport report;
};
Result<FinishedTrees> finish_trees(std::vector<PreparedTree> trees, const Writers& writers,
                                   SumsByPrefix sums, Attempt& attempt, const SaveOptions& options);

/// All of them, by one process. A path that ends in ".safetensors" becomes one bare file.
Result<SaveReport> save_prepared(std::vector<PreparedTree> trees, const std::string& path,
                                 const SaveOptions& options, Runtime& runtime);

}  // namespace cairn::inline checkpoint
