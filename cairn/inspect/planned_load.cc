// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/planned_load.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/load/load.h"
#include "cairn/load/load_plan.h"
#include "cairn/load/load_target.h"
#include "cairn/load/load_together.h"

namespace cairn {

namespace {

int rank_count(const Mesh& mesh) {
  return std::ranges::max(mesh.devices(), {}, &Device::rank).rank + 1;
}

void add_boxes(const PlacedArray& array, int rank, std::vector<WantedBox>& wanted) {
  for (Holding& held : array.sharding.holdings(array.array().stored.shape, rank))
    wanted.push_back({&array.array(), std::move(held.box)});
}

/// The plan has a part for each kReadPieceBytes. What a small file claims is no reason to make so
/// many.
Result<void> check_planned(const std::vector<WantedBox>& wanted) {
  std::uint64_t bytes = 0;
  for (const WantedBox& box : wanted) {
    bytes += box.box.elements() * item_size(box.array->stored.dtype);
    if (bytes <= kMostPlannedBytes) continue;
    return Error(Code::kUnimplemented, "plan/too-large",
                 fmt::format("one rank would hold more than {}; give a mesh of more ranks",
                             format_bytes(kMostPlannedBytes)));
  }
  return {};
}

Result<void> add_plan(const std::vector<WantedBox>& wanted, bool check, RankReads& reads) {
  CAIRN_TRY(check_planned(wanted));
  const LoadPlan plan = plan_load(wanted, check);
  reads.needed += plan.wanted_bytes;
  reads.read += plan.bytes;
  reads.requests += plan.runs.size();
  return {};
}

}  // namespace

std::optional<double> RankReads::amplification() const {
  if (needed == told) return std::nullopt;
  return static_cast<double>(read) / static_cast<double>(needed - told);
}

std::uint64_t PlacedArray::bytes() const {
  return Box::whole(array().stored.shape).elements() * item_size(array().stored.dtype);
}

Result<PlannedLoad> PlannedLoad::make(const Checkpoint& checkpoint, const Mesh& mesh,
                                      const PlannedLoadOptions& options) {
  CAIRN_TRY_ASSIGN(const auto prefixes, select_prefixes(checkpoint, options.prefix));
  LoadOptions load;
  load.mesh = mesh;
  load.partition_rules = options.partition_rules;
  PlannedLoad planned(rank_count(mesh), options.check);
  for (const OpenedPrefix* prefix : prefixes) {
    auto added = planned.add(*prefix, load);
    if (prefix->name.empty()) CAIRN_TRY(added);
    CAIRN_TRY(std::move(added).in([&] { return "prefix " + prefix->name; }));
  }
  return planned;
}

Result<void> PlannedLoad::add(const OpenedPrefix& prefix, const LoadOptions& options) {
  CAIRN_TRY_ASSIGN(const LoadTarget target, LoadTarget::make(prefix, options));
  for (std::size_t i = 0; i < prefix.manifest.arrays.size(); ++i) {
    CAIRN_TRY_ASSIGN(auto sharding, target.sharding_of(i, nullptr));
    PlacedArray array{&prefix, i, std::move(sharding)};
    array.told = ranks_ > 1 && is_told_by_rank_0(array.sharding, array.array().stored.shape,
                                                 array.bytes(), ranks_);
    arrays_.push_back(std::move(array));
  }
  return {};
}

Result<RankReads> PlannedLoad::reads_of(int rank) const {
  RankReads reads;
  for (std::size_t at = 0; at < arrays_.size();) {
    // As a load does: what rank 0 reads for all apart from what each reads for itself.
    std::vector<WantedBox> own;
    std::vector<WantedBox> shared;
    const OpenedPrefix* prefix = arrays_[at].prefix;
    for (; at < arrays_.size() && arrays_[at].prefix == prefix; ++at) {
      const PlacedArray& array = arrays_[at];
      std::vector<WantedBox>& wanted = array.told ? shared : own;
      const std::size_t before = wanted.size();
      if (!array.told || rank == 0) {
        add_boxes(array, rank, wanted);
      } else {
        reads.needed += array.bytes();
        reads.told += array.bytes();
      }
      if (array.told || wanted.size() > before) ++reads.arrays;
    }
    CAIRN_TRY(add_plan(shared, check_, reads));
    CAIRN_TRY(add_plan(own, check_, reads));
  }
  return reads;
}

Result<PlannedReads> PlannedLoad::reads(Runtime& runtime) const {
  PlannedReads all;
  all.ranks.resize(static_cast<std::size_t>(ranks_));
  CAIRN_TRY(
      for_each_index(runtime.executor(), all.ranks.size(), [&](std::size_t rank) -> Result<void> {
        CAIRN_TRY_ASSIGN(all.ranks[rank], reads_of(static_cast<int>(rank)));
        return {};
      }));
  for (const PlacedArray& array : arrays_) all.total.needed += array.bytes();
  all.total.arrays = arrays_.size();
  for (const RankReads& reads : all.ranks) {
    all.total.read += reads.read;
    all.total.requests += reads.requests;
  }
  const auto most = std::ranges::max_element(all.ranks, {}, &RankReads::read);
  all.largest = static_cast<int>(most - all.ranks.begin());
  return all;
}

}  // namespace cairn
