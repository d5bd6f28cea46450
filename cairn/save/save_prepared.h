// SPDX-License-Identifier: Apache-2.0
// Performs a planned save, from memory (save.h) or from another checkpoint (inspect/convert.h).
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

/// For SaveInternals::hash_chunks: leaves hashing to the writers of the chunks. In a single
/// process, of arrays that may change; with several ranks, of all arrays, because ranks must agree
/// and know only their own memory.
void leave_to_writers(std::vector<PreparedTree>& trees, int ranks);

/// If asked for, the SHA-256 of the arrays that this rank hashes whole: either those that may
/// change, which are then dropped, or the others.
enum class Hash : std::uint8_t { kChanging, kLasting };
Result<void> hash_trees(std::vector<PreparedTree>& trees, Hash which, const SaveOptions& options,
                        Runtime& runtime);

using Writers = std::vector<std::unique_ptr<ArrayWriter>>;
/// The writers keep what they need of the trees.
Result<Writers> make_writers(const std::vector<PreparedTree>& trees, const SaveOptions& options,
                             Runtime& runtime);
Result<void> open_writers(const Writers& writers, const WriterStores& stores);

/// Writes the elements straight from the memory of the caller.
Result<void> write_in_place(ArrayWriter& writer, const WriteJob& job, Runtime& runtime);
using JobsOf = const std::vector<WriteJob>& (ArrayWriter::*)() const;
Result<void> write_jobs(const Writers& writers, JobsOf which, const ProgressSink& progress,
                        Runtime& runtime);

/// For each prefix, sums and hashes of what was written since the last call.
using SumsByPrefix = std::vector<WrittenSums>;
Result<SumsByPrefix> take_sums(const Writers& writers, std::vector<PreparedTree>& trees);

/// Writes the manifests and what the arrays share, and makes them durable: all that the commit
/// needs except the mark.
struct FinishedTrees {
  CommitRequest request;
  SaveReport report;
};
Result<FinishedTrees> finish_trees(std::vector<PreparedTree> trees, const Writers& writers,
                                   SumsByPrefix sums, Attempt& attempt, const SaveOptions& options);

/// One save in progress. Threading: compatible.
class SaveSteps {
 public:
  virtual ~SaveSteps() = default;
  /// In the thread of the caller: agrees with the other ranks and plans what is written. On disk it
  /// creates the destination and, with several ranks, the attempt.
  virtual Result<void> begin() = 0;
  /// REQUIRES: begin() succeeded; the same for complete().
  virtual const Writers& writers() const = 0;
  /// Performs the jobs of the writers, which are open by then, and reports bytes to the sink.
  using Write = std::function<Result<void>(const ProgressSink&)>;
  /// Everything else, in any thread, once. Fails with the error of `write` if it has one.
  virtual Result<SaveReport> complete(const Write& write) = 0;
};

/// A save by one process. A path that ends in ".safetensors" becomes one bare file. `runtime` must
/// outlive it.
Result<std::unique_ptr<SaveSteps>> save_alone(std::vector<PreparedTree> trees, const Uri& uri,
                                              SaveOptions options, Runtime& runtime,
                                              SaveInternals internals = {});

/// All steps, in the thread of the caller, straight from its memory.
Result<SaveReport> save_now(SaveSteps& steps, Runtime& runtime);

}  // namespace cairn
