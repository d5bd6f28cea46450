// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/replica_shares.h"

#include <algorithm>

namespace cairn {

std::uint64_t stretch_of(std::uint64_t passed, std::uint64_t bytes, std::uint64_t total,
                         std::uint64_t ranks) {
  if (bytes == 0 || total == 0) return 0;
  // All doubled, so that the middle is exact.
  __extension__ typedef unsigned __int128 Wide;
  const Wide middle = Wide{passed} * 2 + bytes;
  return static_cast<std::uint64_t>(std::min(middle * ranks / (Wide{total} * 2), Wide{ranks - 1}));
}

// Shardings hand out one address for each set; only the first time is its content looked at.
ReplicaShares::Row& ReplicaShares::row_of(const Ranks& holders) {
  const auto [known, is_new] = by_address_.try_emplace(holders.get(), 0);
  if (is_new) {
    const auto [same, unseen] = by_content_.try_emplace(*holders, rows_.size());
    if (unseen) {
      const auto mine = std::ranges::lower_bound(*holders, rank_);
      rows_.push_back({.total = 0,
                       .passed = 0,
                       .ranks = holders->size(),
                       .mine = static_cast<std::uint64_t>(mine - holders->begin())});
    }
    known->second = same->second;
  }
  return rows_[known->second];
}

void ReplicaShares::count(const Ranks& holders, std::uint64_t bytes) {
  if (holders->size() > 1) row_of(holders).total += bytes;
}

bool ReplicaShares::takes(const Ranks& holders, std::uint64_t bytes) {
  if (holders->size() == 1) return true;
  Row& row = row_of(holders);
  const std::uint64_t taker = stretch_of(row.passed, bytes, row.total, row.ranks);
  row.passed += bytes;
  return taker == row.mine;
}

}  // namespace cairn
