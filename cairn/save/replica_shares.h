// SPDX-License-Identifier: Apache-2.0
// Divides boxes that several ranks hold: equal shares by bytes, computed by each rank alone.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "cairn/sharding/sharding.h"

namespace cairn {

/// Divides `total` bytes into `ranks` equal intervals, and returns the index of the interval with
/// the midpoint of a piece of `bytes` at offset `passed`.
std::uint64_t stretch_of(std::uint64_t passed, std::uint64_t bytes, std::uint64_t total,
                         std::uint64_t ranks);

/// The boxes that one set of ranks shares, over all leaves, form one sequence of bytes, and each
/// rank of the set writes an equal interval of it. A rank considers only its own sets, so the work
/// does not grow with the number of ranks. Threading: compatible.
class ReplicaShares {
 public:
  explicit ReplicaShares(int rank) : rank_(rank) {}

  /// First pass: call it for every box that this rank holds.
  void count(const Ranks& holders, std::uint64_t bytes);
  /// Second pass, for the same boxes in the same order, piece by piece: does this rank write the
  /// piece?
  bool takes(const Ranks& holders, std::uint64_t bytes);

 private:
  struct Row {
    std::uint64_t total = 0;
    std::uint64_t passed = 0;
    std::uint64_t ranks = 1;
    std::uint64_t mine = 0;  // which of the ranks this one is
  };
  Row& row_of(const Ranks& holders);

  const int rank_;
  std::unordered_map<const std::vector<int>*, std::size_t> by_address_;
  std::map<std::vector<int>, std::size_t> by_content_;
  std::vector<Row> rows_;
};

}  // namespace cairn
