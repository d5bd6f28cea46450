// SPDX-License-Identifier: Apache-2.0
// What a caller asks of a load, and what it gets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/progress.h"
#include "cairn/tree/sharding_tree.h"
#include "cairn/tree/tree.h"

namespace cairn {

/// Gets each loaded array, in the order of leaves and in the thread of the caller; its result
/// replaces the array in the tree.
using LeafCallback = std::function<Result<Leaf>(const KeyPath& path, const ShardedArray& array)>;

/// Which rank holds which box: a sharding, or a spec for LoadOptions::mesh.
using ShardingWish = std::variant<Sharding, PartitionSpec>;

/// A wish for each array, in the order of the manifest; nullopt: the other options decide.
using ShardingChooser =
    std::function<Result<std::vector<std::optional<ShardingWish>>>(const OpenedPrefix& prefix)>;

/// Leaves that are replicated on every device of a mesh if nothing else says where they go.
enum class Replicate {
  kOnOneAxis,  ///< all on a mesh of one axis; on other meshes they are refused (load/no-sharding)
  kUnsharded,  ///< also those that were not on a mesh when they were saved
  kAll,
};

struct LoadOptions {
  /// Which tree; needed only where there are several.
  std::optional<std::string> prefix = {};
  /// Leaves and subtrees to load; empty: all. Other leaves are not read, and keep their value in
  /// `like`.
  std::vector<KeyPath> keys = {};
  /// Cast floats to this type; nullopt: keep the stored types.
  std::optional<DType> dtype = {};
  /// The result has this structure. Its arrays give the expected shapes and, if they are sharded,
  /// say which rank holds which box; they need no memory for that.
  const Tree* like = nullptr;
  /// Leaves are sharded over this mesh, and this rank reads only its own boxes. The first of these
  /// that applies to a leaf decides: `choose_shardings`, `shardings`, `partition_rules`, `like` if
  /// it has the leaf on this mesh, the saved spec if the mesh has its axes, `replicate`. nullopt:
  /// arrays are whole on every rank, unless a chooser, `shardings` or `like` say otherwise.
  std::optional<Mesh> mesh = {};
  bool as_saved = true;  ///< false: on a mesh, ignore `like` and the saved specs
  Replicate replicate = Replicate::kOnOneAxis;
  /// false: a leaf of a safetensors checkpoint goes to the mesh only if a chooser, `shardings` or
  /// rules name it, as in the reference system.
  bool mesh_for_safetensors = true;
  const PartitionRules* partition_rules = nullptr;  ///< needs `mesh` (load/no-mesh)
  const ShardingTree* shardings = nullptr;          ///< by key path
  /// For shardings that depend on the content of the checkpoint: called once it is open, in the
  /// thread of the caller, before anything is read.
  ShardingChooser choose_shardings = {};
  /// With `shardings` or a chooser: leaves that they do not name follow the other options. false:
  /// such leaves are refused, and all are listed (load/unnamed-leaves).
  bool mismatch_allowed = true;
  /// Rules, shardings and the callback see key paths with the prefix in front (seen_path.h).
  bool keys_with_prefix = false;
  /// With `like` and a checkpoint of another system: leaves of `like` that are not arrays stay, as
  /// in the reference system. false: stored values replace them.
  bool keep_values = false;
  /// With `like`: missing leaves and other shapes are one error that lists them all, but values of
  /// `like` stay if another system stored arrays alone. false: arrays of equal size are reshaped
  /// (if sharded, every rank reads the whole array), and other leaves of `like` stay; the report
  /// and the log list them.
  bool strict_shapes = true;
  /// With `like`: arrays get its types. Floats are cast; types that cannot be cast are listed with
  /// the shapes that differ, as strict_shapes says.
  bool like_dtypes = false;
  /// With `like`: read into the memory of its arrays; floats are cast to its types.
  bool fill = false;
  bool check = true;  ///< CRC of every block that is read
  /// With several ranks: time limit for all of them to be done.
  std::chrono::nanoseconds timeout = std::chrono::hours(2);
  LeafCallback callback = {};
  /// Batch size, in arrays; progress restarts with each batch. 0: one batch.
  std::size_t chunk_size = 0;
  bool use_async = true;     ///< false: one reader, on the calling thread
  bool validate = false;     ///< check each SHA-256 that is stored (`corrupt`, load/sha256)
  bool description = false;  ///< also reads checkpoint_metadata.json, into Loaded::description
  ProgressSink progress = {};
};

/// What happened, by key path as text.
struct LoadReport {
  std::vector<std::string> loaded = {};
  std::vector<std::string> missing = {};     ///< in `like`, not in the checkpoint
  std::vector<std::string> unexpected = {};  ///< in the checkpoint, not in `like`
  std::vector<std::string> mismatched = {};  ///< other shape: reshaped, or left as it was
  std::vector<std::string> kept = {};        ///< from `like`, because nothing fits; also logged
  std::vector<std::string> cast = {};
  std::vector<std::string> unchecked = {};  ///< read without a checksum
  std::vector<std::string> notes = {};      ///< sentences for a person
  std::uint64_t bytes = 0;                  ///< of elements loaded
};

struct Loaded {
  std::string path;                      ///< of the checkpoint
  std::string prefix;                    ///< the name of the tree
  bool foreign = false;                  ///< another system saved it
  std::string structure_file = {};       ///< as OpenedPrefix has it
  std::optional<Record> record = {};     ///< as Checkpoint has it, of the same commit as the tree
  std::optional<std::string> mark = {};  ///< likewise
  std::optional<std::string> description = {};  ///< if asked for; of the same commit
  Tree tree = Tree::none();
  Json metadata;
  Json extras;
  LoadReport report;
};

}  // namespace cairn
