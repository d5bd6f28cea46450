// SPDX-License-Identifier: Apache-2.0
// Writes the arrays of one prefix as objects of a store: one implementation for each layout.
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

/// A piece of an array that one thread copies, encodes, sums and writes.
struct WriteJob {
  std::size_t array = 0;
  std::uint64_t what = 0;          ///< private to the layout
  std::uint64_t bytes = 0;         ///< of elements, for progress
  std::uint64_t cell_bytes = 0;    ///< of cells()
  std::uint64_t make_bytes = 0;    ///< most memory that cells() takes
  std::uint64_t encode_bytes = 0;  ///< most memory that write() takes in addition to the cells
  bool immutable = false;          ///< nobody will change what cells() reads
};

/// Where the objects of a prefix are written.
struct WriterStores {
  storage::Store* data = nullptr;
  storage::Store* pieces = nullptr;  ///< with several ranks: what they leave for each other
};

/// The writer of one prefix on one rank. Threading: cells() and write() are safe; the rest is not.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  /// The jobs of this rank.
  virtual const std::vector<WriteJob>& jobs() const = 0;
  /// The elements of a job as they will be stored, before the codec. Elements that must be
  /// converted are placed in `scratch`, which is reused if it is large enough.
  virtual Result<ByteSpan> cells(const WriteJob& job, Buffer& scratch) const = 0;
  /// Ends the use of the memory of arrays that may change: their cells() is not called again.
  virtual void forget_changing_arrays() = 0;
  /// Before the first write. The stores must outlive it.
  virtual Result<void> open(const WriterStores& stores) = 0;
  virtual Result<void> write(const WriteJob& job, ByteSpan cells) = 0;
  /// Jobs of this rank after all ranks have written: it assembles what they left.
  virtual const std::vector<WriteJob>& late_jobs() const = 0;
  /// Ends the writing. Returns the sums of what this rank wrote since the last call; its objects
  /// become durable when the store is synced.
  virtual Result<WrittenSums> take_sums() = 0;
  /// On rank 0: writes what the arrays share, and adds arrays and parts to the manifest. `sums`
  /// come from all ranks, including hashes of whole arrays.
  virtual Result<void> finish(Manifest& manifest, WrittenSums sums) = 0;
  /// The name of the manifest, and the files and directories of the prefix (with the manifest,
  /// itself or in one of the directories), all relative to the store.
  virtual std::string manifest_name() const = 0;
  virtual std::vector<std::string> entries() const = 0;
};

struct ArrayWriterOptions {
  std::string prefix = {};
  std::uint64_t shard_size = 0;
  /// safetensors: one file of this name that holds its own manifest; `head` is the part that is
  /// known before the data is written.
  std::string bare_name = {};
  const Manifest* head = nullptr;
  bool with_sha256 = false;  ///< hash what is written of arrays that have no hasher
  int rank = 0;
  int ranks = 1;
  std::string pieces_name = {};  ///< of this prefix in the store of pieces
};

}  // namespace cairn
