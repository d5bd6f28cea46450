// SPDX-License-Identifier: Apache-2.0
// What a load onto a mesh would read, rank by rank, from metadata alone. `leaf_readers.h` shows one
// leaf in detail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/runtime.h"
#include "cairn/sharding/partition_rules.h"
#include "cairn/sharding/sharding.h"

namespace cairn {

struct LoadOptions;

/// Most bytes of elements that one rank can hold.
constexpr std::uint64_t kMostPlannedBytes = std::uint64_t{1} << 45;

struct PlannedLoadOptions {
  std::optional<std::string> prefix = {};  ///< nullopt: all, one load after another
  /// Null: the defaults of LoadOptions::mesh.
  const PartitionRules* partition_rules = nullptr;
  bool check = true;  ///< read whole checksum blocks, as LoadOptions::check
};

/// What one rank would do, or all of them.
struct RankReads {
  std::uint64_t arrays = 0;    ///< it holds a part of so many
  std::uint64_t needed = 0;    ///< bytes of elements that it holds, equal boxes once
  std::uint64_t told = 0;      ///< of these: read by rank 0 and broadcast
  std::uint64_t read = 0;      ///< bytes; chunks of unknown length count decoded
  std::uint64_t requests = 0;  ///< reads of one range of one object

  /// Bytes read for each needed byte that is not broadcast. Below 1 if chunks are compressed;
  /// nullopt if nothing is needed.
  std::optional<double> amplification() const;
};

/// An array and where it would go.
struct PlacedArray {
  const OpenedPrefix* prefix = nullptr;
  std::size_t index = 0;  ///< in the prefix
  Sharding sharding = {};
  bool told = false;  ///< rank 0 reads and broadcasts it

  const ManifestArray& array() const { return prefix->manifest.arrays[index]; }
  std::uint64_t bytes() const;  ///< of its elements
  bool split() const { return sharding.groups(array().stored.shape).size() > 1; }
};

struct PlannedReads {
  std::vector<RankReads> ranks;  ///< by number
  /// Sums, in which each array and each byte of `needed` counts once. Its amplification is that of
  /// the job: 1 if no byte is read by two ranks. `told` is 0.
  RankReads total;
  int largest = 0;  ///< the first rank that reads the most bytes
};

/// Keeps pointers into the checkpoint. Threading: compatible.
class PlannedLoad {
 public:
  /// `invalid_argument`, with prefix and leaf: load/no-sharding, sharding/*, rules/*; errors of
  /// Checkpoint::prefix().
  static Result<PlannedLoad> make(const Checkpoint& checkpoint, const Mesh& mesh,
                                  const PlannedLoadOptions& options);

  int ranks() const { return ranks_; }
  /// In the order of the trees; arrays of one prefix are contiguous.
  const std::vector<PlacedArray>& arrays() const { return arrays_; }

  /// Uses the memory of one plan of one rank. Linear in the boxes of the rank and the chunks that
  /// they overlap. `unimplemented` (plan/too-large) above kMostPlannedBytes.
  Result<RankReads> reads_of(int rank) const;
  /// Of all ranks; each thread plans one rank at a time.
  Result<PlannedReads> reads(Runtime& runtime) const;

 private:
  PlannedLoad(int ranks, bool check) : ranks_(ranks), check_(check) {}
  Result<void> add(const OpenedPrefix& prefix, const LoadOptions& options);

  int ranks_;
  bool check_;
  std::vector<PlacedArray> arrays_;
};

}  // namespace cairn
