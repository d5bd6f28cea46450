// SPDX-License-Identifier: Apache-2.0
// Performs a save of which everything is planned: from memory (save.h) or from another checkpoint
// (inspect/convert.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cairn/base/uri.h"
#include "cairn/commit/commit.h"
#include "cairn/save/array_writer.h"
#include "cairn/save/prepare.h"

namespace cairn {

// The steps of a save, each for all of its trees. ---------------------------------------------

AttemptOptions attempt_options(const std::vector<PreparedTree>& trees,
                               const SaveInternals& internals, int ranks);

/// For SaveInternals::hash_chunks: leaves hashing to whoever writes the chunks. Alone, of arrays
/// that may change; with several ranks, which must agree and know only their own memory, of all.
void leave_to_writers(std::vector<PreparedTree>& trees, int ranks);

/// SHA-256, if it is asked for, of the arrays that this rank hashes whole: of those that may
/// change, which are then forgotten, or of those that may not.
enum class Hash : std::uint8_t { kChanging, kLasting };
Result<void> hash_trees(std::vector<PreparedTree>& trees, Hash which, const SaveOptions& options,
                        Runtime& runtime);

using Writers = std::vector<std::unique_ptr<ArrayWriter>>;
/// They keep what they need of the trees.
Result<Writers> make_writers(const std::vector<PreparedTree>& trees, const SaveOptions& options,
                             Runtime& runtime);
Result<void> open_writers(const Writers& writers, const WriterPlace& place);

/// Takes the elements from where they lie.
Result<void> write_in_place(ArrayWriter& writer, const WriteJob& job, Runtime& runtime);
using JobsOf = const std::vector<WriteJob>& (ArrayWriter::*)() const;
Result<void> write_jobs(const Writers& writers, JobsOf which, const ProgressSink& progress,
                        Runtime& runtime);

/// Of each prefix: what was written and hashed since the last call.
using SumsByPrefix = std::vector<WrittenSums>;
Result<SumsByPrefix> take_sums(const Writers& writers, std::vector<PreparedTree>& trees);

/// Manifests and what the arrays have in common, written and durable: ready for the commit, but for
/// the mark.
struct FinishedTrees {
  CommitRequest request;
  SaveReport report;
};
Result<FinishedTrees> finish_trees(std::vector<PreparedTree> trees, const Writers& writers,
                                   SumsByPrefix sums, Attempt& attempt, const SaveOptions& options);

/// One save on its way. Threading: compatible.
class SaveSteps {
 public:
  virtual ~SaveSteps() = default;
  /// In the caller's thread: agrees with the other ranks and finds out what is to be written. What
  /// it changes on disk: the destination is there; with several ranks the attempt is, too.
  virtual Result<void> begin() = 0;
  /// REQUIRES: begin() was fine; so for complete().
  virtual const Writers& writers() const = 0;
  /// Performs the jobs of the writers, which are open by then, and counts the bytes for the sink.
  using Write = std::function<Result<void>(const ProgressSink&)>;
  /// All the rest, in any thread, once. The error of `write` is the save's.
  virtual Result<SaveReport> complete(const Write& write) = 0;
};

/// By one process. A path that ends in ".safetensors" becomes one bare file. `runtime` must outlive
/// it.
Result<std::unique_ptr<SaveSteps>> save_alone(std::vector<PreparedTree> trees, const Uri& uri,
                                              SaveOptions options, Runtime& runtime,
                                              SaveInternals internals = {});

/// All steps, in the caller's thread, from where the elements lie.
Result<SaveReport> save_now(SaveSteps& steps, Runtime& runtime);

}  // namespace cairn
