// SPDX-License-Identifier: Apache-2.0
// What a caller asks of a save, and what it hears of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/commit/commit_guard.h"
#include "cairn/format/codec_spec.h"
#include "cairn/manifest/names.h"
#include "cairn/runtime/progress.h"
#include "cairn/tree/sharding_tree.h"
#include "cairn/tree/tree.h"

namespace cairn {

struct SaveOptions {
  /// kZarr2Layout ("zarr2", what JAX and the reference system read) or kSafetensorsLayout.
  std::string layout{kZarr2Layout};
  /// Compress zarr2 chunks with zstd 1. safetensors has no compression: refused there
  /// (save/compression-unsupported).
  bool enable_compression = false;
  /// Another codec than zstd 1; implies enable_compression.
  std::optional<format::CodecSpec> codec = {};
  /// Cast floats to this type, rounded to nearest even; nothing: bit for bit.
  std::optional<DType> float_dtype = {};
  /// Store a SHA-256 of each array beside the checksums that are always there. With several ranks,
  /// an array that no rank holds whole gets one for each of its pieces.
  bool enable_validation = false;
  /// With several chunks, a digest of each, taken as it is written, instead of one that takes a
  /// pass over memory which may change after it. save_async() sets it, so that nobody waits for a
  /// hash; bare files have no room for it.
  bool hash_chunks = false;
  std::uint64_t chunk_bytes = 64 * kMiB;  ///< largest zarr2 chunk
  std::uint64_t shard_size = 5 * kGiB;    ///< largest safetensors part
  std::optional<std::int64_t> step = {};
  std::string run_id = {};
  Json metadata = {};  ///< the user's; an object, or null
  Json extras = {};    ///< the user's; an object, or null
  /// Replace a tree that has other leaves. Without it, a save over a tree with other leaves
  /// (another set of key paths) is refused with `already_exists` (save/other-tree); nothing is
  /// touched. A tree with the same leaves is always replaced, whatever their shapes, types and
  /// values; what another system stored is compared by its arrays alone. With several ranks, rank
  /// 0's alone.
  bool overwrite = false;
  bool write_index = true;  ///< tensorstore_index.json, for the reference system
  /// Prefixes and the texts of their `<prefix>_structure.json`, by which the reference system loads
  /// a tree with its containers; they come and go with the prefix. zarr2 with an index alone; rank
  /// 0's alone. A prefix without a text here gets one if its tree has no other containers than
  /// dicts, lists, tuples and None: the others only Python's pickles can name.
  std::vector<std::pair<std::string, std::string>> structures = {};
  /// Axes of the mesh, and how arrays are to lie on it when they are loaded, by key path without
  /// the prefix: written down for arrays that lie on no mesh now. One bare file has no room for it.
  std::vector<MeshAxis> mesh = {};
  SpecTree wishes = {};
  /// Text of the mark `metadata.json`; nothing: none is written and one that is there stays.
  std::optional<std::string> mark = {};
  /// With several ranks, limits two waits: for all ranks to arrive, then for the decision. A rank
  /// that is late fails the save on all of them; the error names it.
  std::chrono::nanoseconds timeout = std::chrono::minutes(30);
  /// Why this rank has nothing to save after all: the save fails with it, on all ranks.
  std::optional<Error> refusal = {};
  ProgressSink progress = {};  ///< of what this rank writes
  PhaseSink phase = {};
  /// Held from before the decision until all is in place; its error refuses the save. With several
  /// ranks, rank 0's alone.
  CommitGuard guard = {};
};

struct SaveReport {
  std::string path = {};
  std::string attempt = {};
  std::uint64_t arrays = 0;
  std::uint64_t bytes = 0;                ///< of elements
  std::uint64_t stored_bytes = 0;         ///< of their stored form; rank 0 alone knows
  std::uint64_t written_bytes = 0;        ///< stored bytes that this rank wrote into the checkpoint
  std::vector<std::string> digests = {};  ///< root digest of each prefix; rank 0 alone knows
};

/// One tree and the name it gets in the checkpoint; "" is the tree without a prefix.
using NamedTree = std::pair<std::string, Tree>;

}  // namespace cairn
