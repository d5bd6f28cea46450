// SPDX-License-Identifier: Apache-2.0
// How a load onto a mesh would go, rank by rank, from metadata alone. `leaf_readers.h` has one leaf
// in detail.
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
  std::optional<std::string> prefix = {};  ///< nothing: all, one load after the other
  /// Null: as LoadOptions::mesh says of a load without rules and shardings.
  const PartitionRules* partition_rules = nullptr;
  bool check = true;  ///< read whole checksum blocks, as LoadOptions::check
};

/// What one rank would do, or all of them.
struct RankReads {
  std::uint64_t arrays = 0;    ///< of which it holds something
  std::uint64_t needed = 0;    ///< bytes of elements that it holds, equal boxes once
  std::uint64_t told = 0;      ///< of these: read by rank 0, who tells the others
  std::uint64_t read = 0;      ///< bytes; chunks of unknown length count decoded
  std::uint64_t requests = 0;  ///< reads of one range of one object

  /// Bytes read for each byte that is needed and not told. Below 1 where chunks are compressed;
  /// nothing where nothing is needed.
  std::optional<double> amplification() const;
};

/// An array and where it would go.
struct PlacedArray {
  const OpenedPrefix* prefix = nullptr;
  std::size_t index = 0;  ///< in the prefix
  Sharding sharding = {};
  bool told = false;  ///< rank 0 reads it for all

  const ManifestArray& array() const { return prefix->manifest.arrays[index]; }
  std::uint64_t bytes() const;  ///< of its elements
  bool split() const { return sharding.groups(array().stored.shape).size() > 1; }
};

struct PlannedReads {
  std::vector<RankReads> ranks;  ///< by number
  /// Sums, but that each array, and each byte of `needed`, counts once: the amplification of the
  /// job, 1 where no byte is read by two ranks. `told` is 0: somebody reads it.
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
  /// In the order of the trees; those of one prefix stand together.
  const std::vector<PlacedArray>& arrays() const { return arrays_; }

  /// Memory for one rank's plan at a time. Linear in its boxes and the chunks that they meet.
  /// `unimplemented` (plan/too-large) above kMostPlannedBytes.
  Result<RankReads> reads_of(int rank) const;
  /// Of all ranks, one after the other on each thread.
  Result<PlannedReads> reads(Runtime& runtime) const;

 private:
  PlannedLoad(int ranks, bool check) : ranks_(ranks), check_(check) {}
  Result<void> add(const OpenedPrefix& prefix, const LoadOptions& options);

  int ranks_;
  bool check_;
  std::vector<PlacedArray> arrays_;
};

}  // namespace cairn
