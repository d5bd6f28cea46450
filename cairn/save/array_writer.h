// SPDX-License-Identifier: Apache-2.0
// How the arrays of one prefix become objects of a store: one implementation a layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/manifest/manifest.h"
#include "cairn/manifest/sums.h"
#include "cairn/save/save_plan.h"
#include "cairn/storage/store.h"

namespace cairn {

/// A piece of an array that is copied, encoded, summed and written by one thread.
struct WriteJob {
  std::size_t array = 0;
  std::uint64_t what = 0;          ///< the layout's business
  std::uint64_t bytes = 0;         ///< of elements, for progress
  std::uint64_t cell_bytes = 0;    ///< of cells()
  std::uint64_t make_bytes = 0;    ///< memory that cells() takes at most
  std::uint64_t encode_bytes = 0;  ///< memory that write() takes at most, beside the cells
  bool immutable = false;          ///< nobody will change what cells() reads
};

/// Where the objects of a prefix go.
struct WriterPlace {
  storage::Store* data = nullptr;
  storage::Store* pieces = nullptr;  ///< with several ranks: what they leave for each other
};

/// One rank's writer of one prefix. Threading: cells() and write() are safe; the rest is not.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  /// What this rank has to do.
  virtual const std::vector<WriteJob>& jobs() const = 0;
  /// The elements of a job as they will be stored, but for the codec. What must be made lies in
  /// `scratch`, which is used as it is if it is large enough.
  virtual Result<ByteSpan> cells(const WriteJob& job, Buffer& scratch) const = 0;
  /// cells() of what may change is not called any more: its memory is the caller's again.
  virtual void forget_changing_arrays() = 0;
  /// Before the first write. The stores must outlive it.
  virtual Result<void> open(const WriterPlace& place) = 0;
  virtual Result<void> write(const WriteJob& job, ByteSpan cells) = 0;
  /// What this rank has to do after all ranks have written: putting together what they left.
  virtual const std::vector<WriteJob>& late_jobs() const = 0;
  /// Ends the writing. The sums of what this rank wrote since the last call; its objects become
  /// durable with the store.
  virtual Result<WrittenSums> take_sums() = 0;
  /// Rank 0: writes what the arrays have in common, and tells the manifest of them: arrays and
  /// parts. `sums` are those of all ranks, and of whoever hashed arrays whole.
  virtual Result<void> finish(Manifest& manifest, WrittenSums sums) = 0;
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
  bool with_sha256 = false;  ///< hash what is written of arrays that have no hasher
  int rank = 0;
  int ranks = 1;
  std::string pieces_name = {};  ///< of this prefix in the store of pieces
};

}  // namespace cairn
