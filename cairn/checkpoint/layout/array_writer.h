// SPDX-License-Identifier: Apache-2.0
// How the arrays of one prefix become objects of a store: one implementation a layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/checkpoint/manifest.h"
#include "cairn/checkpoint/runtime.h"
#include "cairn/checkpoint/save_plan.h"
#include "cairn/storage/store.h"

namespace cairn::inline checkpoint {

/// A piece of an array that is encoded, summed and written by one thread.
struct WriteJob {
  std::size_t array = 0;
  std::uint64_t begin = 0;  ///< what begin and end count is the layout's business
  std::uint64_t end = 0;
  std::uint64_t bytes = 0;  ///< of elements, for progress
};

/// Threading: write() is safe; finish() once, after all jobs succeeded.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  virtual const std::vector<WriteJob>& jobs() const = 0;
  virtual Result<void> write(const WriteJob& job) = 0;
  /// Completes the objects and tells the manifest of them: arrays and parts. `sha256` has a digest
  /// for each array, or is empty.
  virtual Result<void> finish(Manifest& manifest, const std::vector<std::string>& sha256) = 0;
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
  storage::Store* store = nullptr;
  Runtime* runtime = nullptr;
};

/// `arrays` point into a tree that outlives the writer.
Result<std::unique_ptr<ArrayWriter>> make_zarr2_writer(std::vector<PlannedArray> arrays,
                                                       const ArrayWriterOptions& options);
Result<std::unique_ptr<ArrayWriter>> make_safetensors_writer(std::vector<PlannedArray> arrays,
                                                             const ArrayWriterOptions& options);

/// Sums of the blocks of `stored`, while it is handed on block by block to `write`: each byte is
/// brought into the cache once.
template <typename Write>
Result<std::vector<std::uint32_t>> sum_and_write(ByteSpan stored, const Write& write);

}  // namespace cairn::inline checkpoint

#include "cairn/base/crc32c.h"

namespace cairn::inline checkpoint {

template <typename Write>
Result<std::vector<std::uint32_t>> sum_and_write(ByteSpan stored, const Write& write) {
  std::vector<std::uint32_t> crcs;
  crcs.reserve(block_count(stored.size(), kBlockBytes));
  for (std::size_t at = 0; at < stored.size(); at += kBlockBytes) {
    const ByteSpan block =
        stored.subspan(at, std::min<std::size_t>(kBlockBytes, stored.size() - at));
    crcs.push_back(crc32c(block));
    CAIRN_TRY(write(at, block));
  }
  return crcs;
}

}  // namespace cairn::inline checkpoint
