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

/// Gets each array that was loaded, in the order of leaves and in the caller's thread; what it
/// returns stands in the tree instead.
using LeafCallback = std::function<Result<Leaf>(const KeyPath& path, const ShardedArray& array)>;

/// Who is to hold which box: a sharding, or a spec for LoadOptions::mesh.
using ShardingWish = std::variant<Sharding, PartitionSpec>;

/// A wish for each array, in the order of the manifest; nullopt: the other options decide.
using ShardingChooser =
    std::function<Result<std::vector<std::optional<ShardingWish>>>(const OpenedPrefix& prefix)>;

/// Leaves that go to every device of a mesh if nothing says how they lie on it.
enum class Replicate {
  kOnOneAxis,  ///< all of them on a mesh of one axis; on others they are refused (load/no-sharding)
  kUnsharded,  ///< also those that lay on no mesh when they were saved
  kAll,
};

struct LoadOptions {
  /// Which tree; needed only where there are several.
  std::optional<std::string> prefix = {};
  /// Leaves and subtrees to load; empty: all. What is not wanted is not read, and stays as `like`
  /// has it.
  std::vector<KeyPath> keys = {};
  /// Cast floats to this type; nothing: as stored.
  std::optional<DType> dtype = {};
  /// The result takes this structure. Its arrays say which shapes are expected, and, if they are
  /// sharded, who is to hold which box; they need no memory for that.
  const Tree* like = nullptr;
  /// Leaves are spread over this mesh, and this rank reads only its own boxes. The first that says
  /// something about a leaf decides: `choose_shardings`, `shardings`, `partition_rules`, `like` if
  /// it has the leaf on this mesh, how the leaf was saved if the mesh has those axes, `replicate`.
  /// Nothing: arrays are whole, on every rank, unless a chooser, `shardings` or `like` say
  /// otherwise.
  std::optional<Mesh> mesh = {};
  bool as_saved = true;  ///< false: on a mesh, neither `like` nor how a leaf was saved count
  Replicate replicate = Replicate::kOnOneAxis;
  /// false: of a safetensors checkpoint only what a chooser, `shardings` or rules name goes to the
  /// mesh, as the reference system does it.
  bool mesh_for_safetensors = true;
  const PartitionRules* partition_rules = nullptr;  ///< needs `mesh` (load/no-mesh)
  const ShardingTree* shardings = nullptr;          ///< by key path
  /// For shardings that depend on what there is: asked when the checkpoint is open, in the caller's
  /// thread, before anything is read.
  ShardingChooser choose_shardings = {};
  /// With `shardings` or a chooser: the other options decide about leaves that these do not name.
  /// false: such leaves are refused, and all are listed (load/unnamed-leaves).
  bool mismatch_allowed = true;
  /// Rules, shardings and the callback see key paths with the prefix in front (seen_path.h).
  bool keys_with_prefix = false;
  /// With `like`, of another system's checkpoint: its leaves that are no arrays stay as they are,
  /// as the reference system does it. false: values that are stored take their place.
  bool keep_values = false;
  /// With `like`: a missing leaf or another shape is an error that lists every one; but values of
  /// `like` stay where another system stored arrays alone. false: arrays of equal size are
  /// reshaped (for a sharded one, every rank reads the whole array), and where nothing fits the
  /// leaf of `like` stays. The report and the log say which.
  bool strict_shapes = true;
  /// With `like`: arrays get its types. Floats are cast; what no cast leads to is listed with the
  /// shapes that differ, as strict_shapes says.
  bool like_dtypes = false;
  /// With `like`: read into the memory of its arrays, casting floats where its type differs.
  bool fill = false;
  bool check = true;  ///< CRC of every block that is read
  /// With several ranks: longest time until all of them are done.
  std::chrono::nanoseconds timeout = std::chrono::hours(2);
  LeafCallback callback = {};
  /// Batch size, in arrays; progress counts each batch by itself. 0: all in one batch.
  std::size_t chunk_size = 0;
  bool use_async = true;     ///< false: one reader, on the calling thread
  bool validate = false;     ///< SHA-256 of whatever has one (`corrupt`, load/sha256)
  bool description = false;  ///< also reads checkpoint_metadata.json, into Loaded::description
  ProgressSink progress = {};
};

/// What happened, by key path as text.
struct LoadReport {
  std::vector<std::string> loaded = {};
  std::vector<std::string> missing = {};     ///< in `like`, not in the checkpoint
  std::vector<std::string> unexpected = {};  ///< in the checkpoint, not in `like`
  std::vector<std::string> mismatched = {};  ///< other shape: reshaped, or left as it was
  std::vector<std::string> kept = {};        ///< as `like` has them: nothing fits; also logged
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
  std::optional<std::string> mark = {};  ///< so too
  std::optional<std::string> description = {};  ///< if asked for; of the same commit
  Tree tree = Tree::none();
  Json metadata;
  Json extras;
  LoadReport report;
};

}  // namespace cairn
