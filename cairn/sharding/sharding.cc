// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/sharding.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/sharding/refuse.h"
#include "cairn/sharding/tiling.h"

namespace cairn {
namespace {

Result<void> check_box(const Placement& placement, const Shape& shape) {
  const Box& box = placement.box;
  const auto outside = [&](std::string_view what) {
    return refuse("sharding/box-outside",
                  fmt::format("{} of device {} does not lie within shape {}", what,
                              placement.device.id, to_string(shape)));
  };
  if (box.begin.size() != shape.size() || box.end.size() != shape.size()) {
    return outside(fmt::format("a box of rank {}", box.rank()));
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (box.begin[i] < 0 || box.begin[i] > box.end[i] || box.end[i] > shape[i]) {
      return outside("box " + box.to_string());
    }
  }
  return {};
}

Result<void> check_placements(const Shape& shape, const std::vector<Placement>& placements) {
  if (placements.empty()) {
    return refuse("sharding/not-covered",
                  fmt::format("shape {} has no boxes; give at least one", to_string(shape)));
  }
  std::vector<const Box*> boxes;
  boxes.reserve(placements.size());
  for (const Placement& placement : placements) {
    CAIRN_TRY(check_box(placement, shape));
    boxes.push_back(&placement.box);
  }
  return check_tiling(shape, boxes);
}

// Numbers equal boxes equally, by their first device.
DeviceGroups group_equal(const std::vector<Placement>& placements) {
  std::vector<std::size_t> order(placements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Box& x = placements[a].box;
    const Box& y = placements[b].box;
    return std::tie(x.begin, x.end, a) < std::tie(y.begin, y.end, b);
  });
  std::vector<std::size_t> first(placements.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && placements[order[i]].box == placements[order[i - 1]].box;
    first[order[i]] = same ? first[order[i - 1]] : order[i];
  }
  std::vector<std::size_t> group_of(placements.size());
  std::vector<int> ranks;
  std::size_t groups = 0;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    group_of[i] = first[i] == i ? groups++ : group_of[first[i]];
    ranks.push_back(placements[i].device.rank);
  }
  return DeviceGroups(ranks, std::move(group_of));
}

Cut uncut(Index size) { return {std::max<Index>(size, 1), true}; }

std::vector<Cut> find_cuts(const Shape& shape, const std::vector<Placement>& placements) {
  std::vector<Cut> cuts;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Index step = 0;
    for (const Placement& placement : placements) {
      for (const Index at : {placement.box.begin[d], placement.box.end[d]}) {
        if (at != shape[d]) step = std::gcd(step, at);
      }
    }
    cuts.push_back(step == 0 ? uncut(shape[d]) : Cut{step, false});
  }
  return cuts;
}

}  // namespace

struct Sharding::Boxes {
  Shape shape;
  std::vector<Placement> placements;
  std::vector<Cut> cuts;
  DeviceGroups groups;
};

Sharding::Sharding(NamedSharding named) : kind_(std::move(named)) {}

Result<Sharding> Sharding::of_boxes(Shape shape, std::vector<Placement> placements) {
  CAIRN_TRY(element_count(shape));
  CAIRN_TRY(check_placements(shape, placements));
  std::vector<Cut> cuts = find_cuts(shape, placements);
  DeviceGroups groups = group_equal(placements);
  Sharding sharding;
  sharding.kind_ = std::make_shared<const Boxes>(
      Boxes{std::move(shape), std::move(placements), std::move(cuts), std::move(groups)});
  return sharding;
}

const Sharding::Boxes* Sharding::boxes() const {
  const auto* boxes = std::get_if<std::shared_ptr<const Boxes>>(&kind_);
  return boxes == nullptr ? nullptr : boxes->get();
}

std::size_t Sharding::device_count() const {
  if (named() != nullptr) return named()->mesh().size();
  return boxes() != nullptr ? boxes()->placements.size() : 1;
}

Device Sharding::device(std::size_t position) const {
  if (named() != nullptr) return named()->mesh().devices()[position];
  return boxes() != nullptr ? boxes()->placements[position].device : Device{};
}

Result<void> Sharding::check(const Shape& shape) const {
  if (named() != nullptr) return named()->check(shape);
  if (boxes() == nullptr || boxes()->shape == shape) return {};
  return refuse("sharding/other-shape",
                fmt::format("an array of shape {} is given the boxes of one of shape {}",
                            to_string(shape), to_string(boxes()->shape)));
}

Box Sharding::box(std::size_t position, const Shape& shape) const {
  if (named() != nullptr) return named()->box(position, shape);
  return boxes() != nullptr ? boxes()->placements[position].box : Box::whole(shape);
}

std::vector<Cut> Sharding::cuts(const Shape& shape) const {
  if (boxes() != nullptr) return boxes()->cuts;
  std::vector<Cut> cuts;
  cuts.reserve(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Index parts = named() != nullptr ? named()->parts(d) : 1;
    const bool cut = parts > 1 && shape[d] > 0;
    cuts.push_back(cut ? Cut{shape[d] / parts, false} : uncut(shape[d]));
  }
  return cuts;
}

const DeviceGroups& Sharding::groups(const Shape& shape) const {
  static const auto* const alone = new DeviceGroups(std::vector<int>{0}, {0});
  if (named() != nullptr) return named()->groups(shape);
  return boxes() != nullptr ? boxes()->groups : *alone;
}

std::vector<Holding> Sharding::holdings(const Shape& shape, int rank) const {
  const DeviceGroups& equal = groups(shape);
  std::vector<Holding> holdings;
  for (const auto& [position, group] : equal.of_rank(rank)) {
    holdings.push_back({box(position, shape), position, group, equal.ranks(group)});
  }
  return holdings;
}

bool Sharding::operator==(const Sharding& other) const {
  if (kind_ == other.kind_) return true;
  if (boxes() == nullptr || other.boxes() == nullptr) return false;
  return boxes()->shape == other.boxes()->shape && boxes()->placements == other.boxes()->placements;
}

}  // namespace cairn
