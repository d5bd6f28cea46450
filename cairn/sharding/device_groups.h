// SPDX-License-Identifier: Apache-2.0
// `DeviceGroups`: which devices hold equal boxes of an array, and to which ranks they belong.
#pragma once

#include <memory>
#include <span>
#include <vector>

namespace cairn {

/// One accelerator (or host) of the job.
struct Device {
  int id = 0;
  int rank = 0;  ///< the process that it belongs to
  bool operator==(const Device&) const = default;
};

/// Sorted, each once. A group hands out the same pointer every time.
using Ranks = std::shared_ptr<const std::vector<int>>;

/// Devices are named by their position in a list. Immutable. Threading: safe.
class DeviceGroups {
 public:
  /// A group in which a rank has devices; `position` is the first of them.
  struct Member {
    std::size_t position = 0;
    std::size_t group = 0;
    bool operator==(const Member&) const = default;
  };

  /// `group_of` by position, numbered from 0 without gaps. REQUIRES: equal sizes.
  DeviceGroups(std::span<const int> rank_of, std::vector<std::size_t> group_of);

  /// How many groups there are.
  std::size_t size() const { return ranks_.size(); }
  std::size_t group_of(std::size_t position) const { return group_of_[position]; }
  const Ranks& ranks(std::size_t group) const { return ranks_[group]; }
  /// The groups of `rank`, each once, by position.
  std::span<const Member> of_rank(int rank) const;

 private:
  std::vector<std::size_t> group_of_;
  std::vector<Ranks> ranks_;
  // members_[first_[i]] up to first_[i + 1] are those of numbers_[i], which is sorted.
  std::vector<int> numbers_;
  std::vector<std::size_t> first_;
  std::vector<Member> members_;
};

}  // namespace cairn
