// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/reshard.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/array/array.h"
#include "cairn/array/flat_range.h"
#include "cairn/coord/agreement.h"
#include "cairn/sharding/describe_shardings.h"
#include "cairn/sharding/make_sharded.h"
#include "cairn/tree/sharding_tree.h"

namespace cairn {

namespace {

constexpr const char* kPhase = "reshard";

/// A box and its elements.
struct Cells {
  Box box;
  Array data;
};

Result<void> copy_common(const Cells& from, const Cells& to) {
  const Box common = from.box.intersect(to.box);
  if (common.empty()) return {};
  Array target = to.data.slice(common.relative_to(to.box.begin));
  return copy_array(from.data.slice(common.relative_to(from.box.begin)), target);
}

Result<void> check_ranks(const Sharding& sharding, const Shape& shape, int ranks) {
  const DeviceGroups& groups = sharding.groups(shape);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const int last = groups.ranks(g)->back();
    if (last < ranks) continue;
    return Error(Code::kInvalidArgument, "plan/unknown-rank",
                 fmt::format("a sharding has rank {}, but {} take part", last, ranks));
  }
  return {};
}

class Move {
 public:
  Move(const ShardedArray& from, const Sharding& target, Runtime& runtime,
       const ReshardOptions& options)
      : from_(from),
        shape_(from.shape()),
        target_(target),
        runtime_(runtime),
        limit_(std::min<std::uint64_t>(options.memory_limit, coord::kMaxPayload)),
        deadline_(Deadline::in(options.timeout)) {}  // coordinators go by the machine's clock

  Result<ShardedArray> run() {
    CAIRN_TRY(target_.check(shape_));
    CAIRN_TRY(check_ranks(from_.sharding(), shape_, runtime_.ranks()));
    CAIRN_TRY(check_ranks(target_, shape_, runtime_.ranks()));
    const auto ready = check_memory(from_, runtime_.rank());
    find_cells();
    if (everybody_has_its_own()) return ready ? collect() : ready.error();
    auto to = allocate_sharded(from_.dtype(), shape_, target_, runtime_.rank());
    CAIRN_TRY(agree(!ready || to ? ready : to.error()));
    CAIRN_TRY(exchange(*to));
    return to;
  }

 private:
  /// Of each box its first rank sends it.
  std::vector<Box> sent_by(int rank) const {
    std::vector<Box> boxes;
    for (Holding& held : from_.sharding().holdings(shape_, rank)) {
      if (held.ranks->front() == rank) boxes.push_back(std::move(held.box));
    }
    return boxes;
  }

  void find_cells() {
    const DeviceGroups& groups = from_.sharding().groups(shape_);
    const auto group = [&](const Shard& shard) { return groups.group_of(shard.position); };
    for (const Holding& held : from_.sharding().holdings(shape_, runtime_.rank())) {
      const auto shard = std::ranges::find(from_.shards(), held.group, group);
      if (shard == from_.shards().end()) continue;
      held_.push_back({held.box, shard->data});
      if (held.ranks->front() == runtime_.rank()) sent_.push_back(held_.back());
    }
  }

  std::vector<Box> wanted_by(int rank) const {
    if (target_ == Sharding()) return {Box::whole(shape_)};
    std::vector<Box> boxes;
    for (Holding& held : target_.holdings(shape_, rank)) boxes.push_back(std::move(held.box));
    return boxes;
  }

  bool everybody_has_its_own() const {
    for (int rank = 0; rank < runtime_.ranks(); ++rank) {
      const auto held = from_.sharding().holdings(shape_, rank);
      for (const Box& box : wanted_by(rank)) {
        std::uint64_t found = 0;
        for (const Holding& part : held) found += part.box.intersect(box).elements();
        if (found != box.elements()) return false;
      }
    }
    return true;
  }

  Result<ShardedArray> collect() const {
    const auto memory = [&](const Box& box) -> Result<Array> {
      for (const Cells& part : held_) {
        if (part.box.contains(box)) return part.data.slice(box.relative_to(part.box.begin));
      }
      CAIRN_TRY_ASSIGN(auto whole, Array::allocate(from_.dtype(), box.shape()));
      for (const Cells& part : held_) CAIRN_TRY(copy_common(part, {box, whole}));
      return whole;
    };
    if (target_ != Sharding())
      return make_sharded(from_.dtype(), shape_, target_, runtime_.rank(), memory);
    CAIRN_TRY_ASSIGN(auto whole, memory(Box::whole(shape_)));
    return ShardedArray(std::move(whole));
  }

  Result<void> agree(const Result<void>& mine) {
    const coord::Ranks ranks{runtime_.coordinator(), deadline_};
    const std::string what = fmt::format(
        "{} {} {} to {}", dtype_name(from_.dtype()), to_string(shape_),
        sharding_fingerprint(from_.sharding(), shape_), sharding_fingerprint(target_, shape_));
    CAIRN_TRY_ASSIGN(const std::string theirs, coord::hear_rank_0(ranks, what, kPhase));
    const Result<void> same =
        what == theirs ? Result<void>()
                       : Error(Code::kFailedPrecondition, "reshard/ranks-disagree",
                               "this rank and rank 0 passed different arrays or shardings");
    return coord::agree(ranks, mine ? same : mine, kPhase);
  }

  Result<void> exchange(const ShardedArray& to) {
    if (runtime_.rank() == 0) {
      for (int rank = 0; rank < runtime_.ranks(); ++rank) sent_by_.push_back(sent_by(rank));
    }
    const std::uint64_t elements = Box::whole(shape_).elements();
    const std::uint64_t step = std::max<std::uint64_t>(1, limit_ / item_size(from_.dtype()));
    for (std::uint64_t at = 0; at < elements; at += step) {
      const auto boxes = flat_range_boxes(shape_, at, std::min(at + step, elements));
      CAIRN_TRY_ASSIGN(const auto said, gather(boxes));
      CAIRN_TRY_ASSIGN(const Buffer piece, put_together(boxes, said));
      CAIRN_TRY_ASSIGN(const Buffer heard,
                       runtime_.coordinator()->broadcast(piece.bytes(), kPhase, deadline_));
      CAIRN_TRY_ASSIGN(const auto cells, cells_of(boxes, heard));
      for (const Shard& shard : to.shards()) {
        for (const Cells& part : cells)
          CAIRN_TRY(copy_common(part, {to.box_of(shard), shard.data}));
      }
    }
    return {};
  }

  // Rank 0: what each rank sends of the boxes.
  Result<std::vector<Buffer>> gather(const std::vector<Box>& boxes) {
    CAIRN_TRY_ASSIGN(Buffer mine, pack(boxes));
    if (!only_rank_0_sends())
      return runtime_.coordinator()->gather(mine.bytes(), kPhase, deadline_);
    std::vector<Buffer> said;
    if (runtime_.rank() == 0) said.push_back(std::move(mine));
    return said;
  }

  bool only_rank_0_sends() const {
    const DeviceGroups& groups = from_.sharding().groups(shape_);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups.ranks(g)->front() != 0) return false;
    }
    return true;
  }

  // Boxes that lie one after the other in `bytes`.
  Result<std::vector<Cells>> cells_of(const std::vector<Box>& boxes, const Buffer& bytes) const {
    std::vector<Cells> cells;
    std::size_t at = 0;
    for (const Box& box : boxes) {
      const std::size_t size = box.elements() * item_size(from_.dtype());
      if (size > bytes.size() - at)
        return Error(Code::kInternal, "reshard/short-piece", "a rank sent less than it holds");
      CAIRN_TRY_ASSIGN(auto data, Array::wrap(from_.dtype(), box.shape(), bytes.slice(at, size)));
      cells.push_back({box, std::move(data)});
      at += size;
    }
    return cells;
  }

  static std::vector<Box> common_boxes(const std::vector<Box>& boxes,
                                       const std::vector<Box>& others) {
    std::vector<Box> common;
    for (const Box& box : boxes) {
      for (const Box& other : others) {
        if (Box both = box.intersect(other); !both.empty()) common.push_back(std::move(both));
      }
    }
    return common;
  }

  Result<Buffer> allocate(const std::vector<Box>& boxes) const {
    std::uint64_t elements = 0;
    for (const Box& box : boxes) elements += box.elements();
    return Buffer::allocate(elements * item_size(from_.dtype()));
  }

  // What this rank sends of the boxes.
  Result<Buffer> pack(const std::vector<Box>& boxes) const {
    const auto common = common_boxes(boxes, sent_by(runtime_.rank()));
    CAIRN_TRY_ASSIGN(Buffer bytes, allocate(common));
    CAIRN_TRY_ASSIGN(const auto cells, cells_of(common, bytes));
    for (const Cells& to : cells) {
      for (const Cells& part : sent_) CAIRN_TRY(copy_common(part, to));
    }
    return bytes;
  }

  // Rank 0: the boxes, from what all sent.
  Result<Buffer> put_together(const std::vector<Box>& boxes,
                              const std::vector<Buffer>& said) const {
    if (said.empty()) return Buffer();
    CAIRN_TRY_ASSIGN(Buffer bytes, allocate(boxes));
    CAIRN_TRY_ASSIGN(const auto cells, cells_of(boxes, bytes));
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      CAIRN_TRY_ASSIGN(const auto parts, cells_of(common_boxes(boxes, sent_by_[rank]), said[rank]));
      for (const Cells& to : cells) {
        for (const Cells& part : parts) CAIRN_TRY(copy_common(part, to));
      }
    }
    return bytes;
  }

  const ShardedArray& from_;
  const Shape& shape_;
  const Sharding& target_;
  Runtime& runtime_;
  const std::uint64_t limit_;
  const Deadline deadline_;
  std::vector<Cells> held_;                // by this rank
  std::vector<Cells> sent_;                // those of them that it sends
  std::vector<std::vector<Box>> sent_by_;  // rank 0: by each rank
};

}  // namespace

Result<ShardedArray> reshard(const ShardedArray& array, const Sharding& target, Runtime& runtime,
                             const ReshardOptions& options) {
  return Move(array, target, runtime, options).run();
}

}  // namespace cairn
