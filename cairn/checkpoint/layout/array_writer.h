// SPDX-License-Identifier: Apache-2.0
// How the arrays of one prefix become objects of a store: one implementation a layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/checkpoint/manifest.h"
#include "cairn/checkpoint/runtime.h"
#include "cairn/checkpoint/save/save_plan.h"
#include "cairn/checkpoint/save/sums.h"
#include "cairn/storage/store.h"

namespace cairn::inline checkpoint {

/// A piece of an array that is encoded, summed and written by one thread.
struct WriteJob {
  std::size_t array = 0;
  std::uint64_t what = 0;   ///< the layout's business
  std::uint64_t bytes = 0;  ///< of elements, for progress
};

/// One rank's writer of one prefix. Threading: write() is safe; the rest is not.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  /// What this rank has to do.
  virtual const std::vector<WriteJob>& jobs() const = 0;
  virtual Result<void> write(const WriteJob& job) = 0;
  /// What this rank has to do after all ranks have written: putting together what they left.
  virtual const std::vector<WriteJob>& late_jobs() const = 0;
  /// Ends the writing. The sums of what this rank wrote since the last call; its objects become
  /// durable with the store.
  virtual Result<std::vector<SummedRange>> take_sums() = 0;
  /// Rank 0: writes what the arrays have in common, and tells the manifest of them: arrays and
  /// parts. `sums` are those of all ranks. `sha256` has a digest for each array, or is empty.
  virtual Result<void> finish(Manifest& manifest, std::vector<SummedRange> sums,
                              const std::vector<std::string>& sha256) = 0;
  /// Name of the manifest, and what the prefix consists of (the manifest included, by itself or
  /// within a directory), all relative to the store.
  virtual std::string manifest_name() const = 0;
  virtual std::vector<std::string> entries() const = 0;
};

struct ArrayWriterOptions {
  std::string prefix = {};
  std::uint64_t shard_size = 0;
  /// safetensors: one file of this name that holds its own manifest, of which `head` is the part
  /// that is known before the data.
  std::string bare_name = {};
  const Manifest* head = nullptr;
  bool with_sha256 = false;
  int rank = 0;
  int ranks = 1;
  storage::Store* store = nullptr;
  storage::Store* pieces =
      nullptr;                   ///< where ranks leave pieces for each other, if there are several
  std::string pieces_name = {};  ///< of this prefix in it
  Runtime* runtime = nullptr;
};

/// `arrays` point into a tree that outlives the writer.
Result<std::unique_ptr<ArrayWriter>> make_zarr2_writer(std::vector<PlannedArray> arrays,
                                                       const ArrayWriterOptions& options);
Result<std::unique_ptr<ArrayWriter>> make_safetensors_writer(std::vector<PlannedArray> arrays,
                                                             const ArrayWriterOptions& options);

}  // namespace cairn::inline checkpoint
