// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/divide_work.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "cairn/array/flat_range.h"
#include "cairn/base/checked.h"
#include "cairn/save/replica_shares.h"

namespace cairn {

namespace {

std::uint64_t stored_bytes(const format::StoredArray& stored, std::uint64_t elements) {
  return elements * item_size(stored.dtype);
}

/// The length of the runs in C order that a box of an array consists of, in elements.
std::uint64_t run_length(const Shape& shape, const Box& box) {
  std::uint64_t run = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const Index size = box.end[d] - box.begin[d];
    run *= static_cast<std::uint64_t>(size);
    if (size != shape[d]) break;
  }
  return run;
}

bool is_long_run(const format::StoredArray& stored, const Box& box) {
  if (box == Box::whole(stored.shape)) return true;
  return !stored.packed && stored_bytes(stored, run_length(stored.shape, box)) >= kShortestRun;
}

/// Can every rank write its boxes of the tensor in place? The same answer on every rank.
bool in_place(const PlannedArray& array) {
  const Shape& shape = array.stored.shape;
  if (Box::whole(shape).empty()) return true;
  if (array.sharding.named() != nullptr)
    return is_long_run(array.stored, array.sharding.box(0, shape));
  for (std::size_t at = 0; at < array.sharding.device_count(); ++at) {
    const Box box = array.sharding.box(at, shape);
    if (!box.empty() && !is_long_run(array.stored, box)) return false;
  }
  return true;
}

class Divider {
 public:
  Divider(int rank, int ranks) : rank_(rank), ranks_(ranks), shares_(rank) {}

  Result<void> count(PlannedArray& array) {
    const Shape& shape = array.stored.shape;
    array.work = {};
    CAIRN_TRY(check_ranks(array).in([&] { return "leaf " + array.path.text(); }));
    for (const Holding& held : array.sharding.holdings(shape, rank_)) {
      shares_.count(held.ranks, stored_bytes(array.stored, held.box.elements()));
    }
    if (ranks_ == 1 || !array.stored.one_object || in_place(array)) return {};
    array.work.assembler = 0;  // there is one; who it is depends on all arrays
    assembled_ += stored_bytes(array.stored, Box::whole(shape).elements());
    return {};
  }

  void divide(PlannedArray& array) {
    array.work.hasher = next_hasher(array);
    if (ranks_ == 1) {
      // Whatever the boxes are, all of them are here.
      const Holding all{Box::whole(array.stored.shape), 0, 0, nobody_else_};
      array.stored.one_object ? take_runs(all, array) : take_chunks(all, array);
      return;
    }
    auto holdings = array.sharding.holdings(array.stored.shape, rank_);
    // Ranks that hold several boxes in common must go through them in one order.
    std::ranges::sort(holdings, {}, &Holding::group);
    if (!array.stored.one_object) {
      for (const Holding& held : holdings) take_chunks(held, array);
      std::ranges::sort(array.work.chunks);
    } else if (array.work.assembler) {
      for (const Holding& held : holdings) take_pieces(held, array);
      array.work.assembler = next_assembler(array);
    } else {
      for (const Holding& held : holdings) take_runs(held, array);
    }
  }

 private:
  Result<void> check_ranks(const PlannedArray& array) {
    const DeviceGroups& groups = array.sharding.groups(array.stored.shape);
    // A mesh has one object for all arrays that are split over the same axes.
    const bool lasting = array.sharding.named() != nullptr;
    if (lasting && !checked_.insert(&groups).second) return {};
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const int last = groups.ranks(g)->back();
      if (last < ranks_) continue;
      return Error(Code::kInvalidArgument, "plan/unknown-rank",
                   fmt::format("it is on rank {} and others, but only {} rank{} take part; save it "
                               "from every process that holds a part of it",
                               last, ranks_, ranks_ == 1 ? "" : "s"));
    }
    return {};
  }

  void take_chunks(const Holding& held, PlannedArray& array) {
    for (const std::uint64_t chunk : array.stored.chunks_of(held.box)) {
      const std::uint64_t bytes =
          stored_bytes(array.stored, array.stored.chunk_box(chunk).elements());
      if (shares_.takes(held.ranks, bytes)) array.work.chunks.push_back(chunk);
    }
  }

  // Runs are cut where the stored bytes reach multiples of kWriteBytes.
  void take_runs(const Holding& held, PlannedArray& array) {
    const format::StoredArray& stored = array.stored;
    if (held.box.empty()) return;
    const std::uint64_t run = run_length(stored.shape, held.box);
    const auto bits = static_cast<std::uint64_t>(bit_width(stored.dtype));
    const std::uint64_t step =
        kWriteBytes * 8 / (stored.packed ? bits : 8 * item_size(stored.dtype));
    for (std::uint64_t n = 0; n < held.box.elements() / run; ++n) {
      std::uint64_t at = run_begin(stored.shape, held.box, run, n);
      for (const std::uint64_t end = at + run; at < end;) {
        const ElementRange range{at, std::min(end, (at / step + 1) * step)};
        if (shares_.takes(held.ranks, stored_bytes(stored, range.end - range.begin)))
          array.work.ranges.push_back(range);
        at = range.end;
      }
    }
  }

  // Where the n-th run of a box begins in the array.
  static std::uint64_t run_begin(const Shape& shape, const Box& box, std::uint64_t run,
                                 std::uint64_t n) {
    Shape index = box.begin;
    std::uint64_t rest = n * run;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const auto size = static_cast<std::uint64_t>(box.end[d] - box.begin[d]);
      index[d] += static_cast<Index>(rest % size);
      rest /= size;
    }
    return flat_index(shape, index);
  }

  void take_pieces(const Holding& held, PlannedArray& array) {
    const std::uint64_t elements = held.box.elements();
    const std::uint64_t step = kWriteBytes / item_size(array.stored.dtype);
    for (std::uint64_t at = 0; at < elements; at += step) {
      const ElementRange range{at, std::min(at + step, elements)};
      if (shares_.takes(held.ranks, stored_bytes(array.stored, range.end - range.begin)))
        array.work.pieces.push_back({held.group, at / step, held.box, range});
    }
  }

  int next_assembler(const PlannedArray& array) {
    const std::uint64_t bytes =
        stored_bytes(array.stored, Box::whole(array.stored.shape).elements());
    const std::uint64_t taker =
        stretch_of(passed_, bytes, assembled_, static_cast<std::uint64_t>(ranks_));
    passed_ += bytes;
    return static_cast<int>(taker);
  }

  std::optional<int> next_hasher(const PlannedArray& array) {
    if (ranks_ == 1) return rank_;
    const DeviceGroups& groups = array.sharding.groups(array.stored.shape);
    if (groups.size() != 1) return std::nullopt;
    const std::vector<int>& holders = *groups.ranks(0);
    return holders[hashed_++ % holders.size()];
  }

  const int rank_;
  const int ranks_;
  ReplicaShares shares_;
  const Ranks nobody_else_ = std::make_shared<const std::vector<int>>(1, rank_);
  std::unordered_set<const DeviceGroups*> checked_;
  std::uint64_t assembled_ = 0;  // bytes of all tensors that are put together, and of those passed
  std::uint64_t passed_ = 0;
  std::size_t hashed_ = 0;  // arrays that are hashed whole
};

}  // namespace

Result<void> divide_work(const std::vector<std::vector<PlannedArray>*>& trees, int rank,
                         int ranks) {
  Divider divider(rank, ranks);
  for (auto* arrays : trees) {
    for (PlannedArray& array : *arrays) CAIRN_TRY(divider.count(array));
  }
  for (auto* arrays : trees) {
    for (PlannedArray& array : *arrays) divider.divide(array);
  }
  return {};
}

}  // namespace cairn
