// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/device_groups.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cairn {
namespace {

struct Seat {
  int rank;
  std::size_t group;
  std::size_t position;
};

// One seat for each rank in each group, by rank, then by position.
std::vector<Seat> seats_of(std::span<const int> rank_of, const std::vector<std::size_t>& group_of) {
  std::vector<Seat> seats;
  seats.reserve(rank_of.size());
  for (std::size_t i = 0; i < rank_of.size(); ++i) seats.push_back({rank_of[i], group_of[i], i});
  std::sort(seats.begin(), seats.end(), [](const Seat& a, const Seat& b) {
    return std::tie(a.rank, a.group, a.position) < std::tie(b.rank, b.group, b.position);
  });
  seats.erase(std::unique(seats.begin(), seats.end(),
                          [](const Seat& a, const Seat& b) {
                            return a.rank == b.rank && a.group == b.group;
                          }),
              seats.end());
  std::sort(seats.begin(), seats.end(), [](const Seat& a, const Seat& b) {
    return std::tie(a.rank, a.position) < std::tie(b.rank, b.position);
  });
  return seats;
}

}  // namespace

DeviceGroups::DeviceGroups(std::span<const int> rank_of, std::vector<std::size_t> group_of)
    : group_of_(std::move(group_of)) {
  const std::size_t count =
      group_of_.empty() ? 0 : *std::max_element(group_of_.begin(), group_of_.end()) + 1;
  std::vector<std::vector<int>> ranks(count);
  for (const Seat& seat : seats_of(rank_of, group_of_)) {
    ranks[seat.group].push_back(seat.rank);
    if (numbers_.empty() || numbers_.back() != seat.rank) {
      numbers_.push_back(seat.rank);
      first_.push_back(members_.size());
    }
    members_.push_back({seat.position, seat.group});
  }
  first_.push_back(members_.size());
  ranks_.reserve(count);
  for (std::vector<int>& of_group : ranks) {
    ranks_.push_back(std::make_shared<const std::vector<int>>(std::move(of_group)));
  }
}

std::span<const DeviceGroups::Member> DeviceGroups::of_rank(int rank) const {
  const auto found = std::lower_bound(numbers_.begin(), numbers_.end(), rank);
  if (found == numbers_.end() || *found != rank) return {};
  const auto i = static_cast<std::size_t>(found - numbers_.begin());
  return std::span(members_).subspan(first_[i], first_[i + 1] - first_[i]);
}

}  // namespace cairn
