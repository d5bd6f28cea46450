// SPDX-License-Identifier: Apache-2.0
// Loads trees, parts of trees and slices of leaves. `save.h` is the other direction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/checkpoint/checkpoint.h"
#include "cairn/checkpoint/progress.h"
#include "cairn/tree/tree.h"

namespace cairn::inline checkpoint {

struct LoadOptions {
  /// Which tree; needed only where there are several.
  std::optional<std::string> prefix = {};
  /// Leaves and subtrees to load; empty: all. What is not wanted is not read.
  std::vector<KeyPath> keys = {};
  /// Cast floats to this type; nothing: as stored.
  std::optional<DType> dtype = {};
  /// The result takes this structure. Its arrays say which shapes are expected.
  const Tree* like = nullptr;
  /// With `like`: a missing leaf or another shape is an error that lists every one. Otherwise
  /// arrays of equal size are reshaped, and where that cannot be the leaf of `like` stays and the
  /// report says so.
  bool strict_shapes = true;
  /// With `like`: read into the memory of its arrays, casting floats where its type differs.
  bool fill = false;
  bool check = true;      ///< CRC of every block that is read
  bool validate = false;  ///< SHA-256 of every array that has one (`corrupt`, load/sha256)
  ProgressSink progress = {};
};

/// What happened, by key path as text.
struct LoadReport {
  std::vector<std::string> loaded = {};
  std::vector<std::string> missing = {};     ///< in `like`, not in the checkpoint
  std::vector<std::string> unexpected = {};  ///< in the checkpoint, not in `like`
  std::vector<std::string> mismatched = {};  ///< other shape: reshaped, or left as it was
  std::vector<std::string> cast = {};
  std::vector<std::string> unchecked = {};  ///< read without a checksum
  std::vector<std::string> notes = {};      ///< sentences for a person
  std::uint64_t bytes = 0;                  ///< of elements loaded
};

struct Loaded {
  Tree tree = Tree::none();
  Json metadata;
  Json extras;
  LoadReport report;
};

/// Opens and loads; starts again if the checkpoint was replaced meanwhile. Errors of
/// open_checkpoint(), prefix(), read_boxes(); `not_found` (load/key-missing), `failed_precondition`
/// (load/missing-array, load/shape-mismatch: each lists every leaf).
Result<Loaded> load(const std::string& path, const LoadOptions& options, Runtime& runtime);
Result<Loaded> load(const Checkpoint& checkpoint, const LoadOptions& options, Runtime& runtime);

/// One box of one array, dense. Only the blocks that it needs are read.
Result<Array> load_box(const OpenedPrefix& prefix, std::size_t array, const Box& box,
                       Runtime& runtime, bool check = true);

/// Arrays of one prefix into memory: `destinations[i]` takes array `which[i]`, whole, cast if its
/// type differs.
Result<void> load_arrays(const OpenedPrefix& prefix, const std::vector<std::size_t>& which,
                         std::vector<Array> destinations, bool check, const ProgressSink& progress,
                         Runtime& runtime);

}  // namespace cairn::inline checkpoint
