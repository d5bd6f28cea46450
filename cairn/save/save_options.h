// SPDX-License-Identifier: Apache-2.0
// What a user asks of one save, and what the save reports.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/format/codec_spec.h"
#include "cairn/manifest/names.h"
#include "cairn/runtime/progress.h"
#include "cairn/tree/sharding_tree.h"
#include "cairn/tree/tree.h"

namespace cairn {

struct SaveReport {
  std::string path = {};
  std::string attempt = {};
  std::uint64_t arrays = 0;
  std::uint64_t bytes = 0;                ///< of elements
  std::uint64_t stored_bytes = 0;         ///< of their stored form; rank 0 alone knows
  std::uint64_t written_bytes = 0;        ///< stored bytes that this rank wrote into the checkpoint
  std::vector<std::string> digests = {};  ///< root digest of each prefix; rank 0 alone knows
};

struct SaveOptions {
  /// kZarr2Layout ("zarr2", what JAX and the reference system read) or kSafetensorsLayout.
  std::string layout{kZarr2Layout};
  /// Compress zarr2 chunks with zstd 1. safetensors has no compression: refused there
  /// (save/compression-unsupported).
  bool enable_compression = false;
  /// A codec other than zstd 1; implies enable_compression.
  std::optional<format::CodecSpec> codec = {};
  /// Cast floats to this type, rounded to nearest even; nullopt: stored bit for bit.
  std::optional<DType> float_dtype = {};
  /// Store a SHA-256 of each array in addition to the checksums. With several ranks, an array that
  /// no rank holds whole gets one for each of its pieces.
  bool enable_validation = false;
  std::uint64_t chunk_bytes = 64 * kMiB;  ///< largest zarr2 chunk
  std::uint64_t shard_size = 5 * kGiB;    ///< largest safetensors part
  std::optional<std::int64_t> step = {};
  Json metadata = {};  ///< the user's; an object, or null
  Json extras = {};    ///< the user's; an object, or null
  /// Replace a tree with other leaves. Without it, a save over a tree with another set of key paths
  /// is refused with `already_exists` (save/other-tree), and nothing changes. A tree with the same
  /// leaves is always replaced, whatever its shapes, types and values. A tree of another system is
  /// compared by its arrays alone. With several ranks only the option of rank 0 counts.
  bool overwrite = false;
  bool write_index = true;  ///< tensorstore_index.json, for the reference system
  /// Axes of a mesh, and the specs on it that later loads use, by key path without the prefix;
  /// stored for arrays that are not on a mesh now. A bare file cannot store them.
  std::vector<MeshAxis> mesh = {};
  SpecTree wishes = {};
  /// With several ranks, limits two waits: for all ranks to arrive, then for the decision. If a
  /// rank is late, the save fails on all of them with an error that names it.
  std::chrono::nanoseconds timeout = std::chrono::minutes(30);
  /// Reports what this rank writes; with save_async() also after the call has returned.
  ProgressSink progress = {};
  /// Called once after the commit. Its error becomes that of the save, although the checkpoint
  /// exists. With save_async() it runs in the background, and calls made from it do not wait for
  /// saves in flight.
  std::function<Result<void>(const SaveReport&)> committed = {};
};

/// One tree and the name it gets in the checkpoint; "" is the tree without a prefix.
using NamedTree = std::pair<std::string, Tree>;

}  // namespace cairn
