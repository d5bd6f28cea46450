// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/left_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cairn/array/array.h"
#include "cairn/array/flat_range.h"
#include "cairn/array/strided_copy.h"
#include "cairn/save/divide_work.h"

namespace cairn {

namespace {

std::string piece_key(const std::string& name, std::size_t group, std::uint64_t number) {
  return fmt::format("{}/{}.{}", name, group, number);
}

class PiecesSource final : public LeafSource {
 public:
  PiecesSource(storage::Store& store, std::string name, const PlannedArray& array)
      : store_(store),
        name_(std::move(name)),
        shape_(array.stored.shape),
        item_(item_size(array.stored.dtype)) {
    const DeviceGroups& groups = array.sharding.groups(shape_);
    boxes_.resize(groups.size());
    std::vector<bool> known(groups.size());
    for (std::size_t at = 0; at < array.sharding.device_count(); ++at) {
      const std::size_t group = groups.group_of(at);
      if (!known[group]) boxes_[group] = array.sharding.box(at, shape_);
      known[group] = true;
    }
  }

  Result<ByteSpan> range(std::uint64_t begin, std::uint64_t end, Buffer& scratch) const override {
    CAIRN_TRY_ASSIGN(const MutableByteSpan to, scratch_of(scratch, (end - begin) * item_));
    for (const Box& wanted : flat_range_boxes(shape_, begin, end)) {
      for (std::size_t group = 0; group < boxes_.size(); ++group) {
        const Box common = wanted.intersect(boxes_[group]);
        if (!common.empty()) CAIRN_TRY(fetch(group, common, begin, to));
      }
    }
    return ByteSpan(to);
  }

  Result<ByteSpan> chunk(const Box& box, const Shape&, Buffer& scratch) const override {
    const std::uint64_t first = flat_index(shape_, box.begin);
    return range(first, first + box.elements(), scratch);
  }

  std::uint64_t scratch_bytes(std::uint64_t elements) const override {
    return 2 * elements * item_;
  }
  bool immutable() const override { return true; }

 private:
  // Part of one box into memory whose first element is the array's `first`.
  Result<void> fetch(std::size_t group, const Box& common, std::uint64_t first,
                     MutableByteSpan into) const {
    const Box& box = boxes_[group];
    const Shape inner = box.shape();
    const Strides strides = dense_strides(shape_, item_);
    Result<void> done;
    each_run(inner, common.relative_to(box.begin), [&](const Box& run) {
      if (!done) return;
      done = [&]() -> Result<void> {
        CAIRN_TRY_ASSIGN(const Buffer bytes,
                         read_run(group, flat_index(inner, run.begin), run.elements()));
        const Box place = run.moved_by(box.begin);
        std::byte* to = into.data() + (flat_index(shape_, place.begin) - first) * item_;
        const Strides packed = dense_strides(run.shape(), item_);
        copy_strided(run.shape(), item_, {bytes.data(), &packed}, {to, &strides});
        return {};
      }();
    });
    return done;
  }

  Result<Buffer> read_run(std::size_t group, std::uint64_t at, std::uint64_t elements) const {
    const std::uint64_t step = kWriteBytes / item_;
    CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::allocate(elements * item_));
    std::uint64_t done = 0;
    while (done < elements) {
      const std::uint64_t number = (at + done) / step;
      const std::uint64_t within = (at + done) % step;
      const std::uint64_t count = std::min(step - within, elements - done);
      CAIRN_TRY_ASSIGN(const auto piece, store_.open(piece_key(name_, group, number)));
      CAIRN_TRY(piece->read_at(within * item_,
                               bytes.mutable_bytes().subspan(done * item_, count * item_)));
      done += count;
    }
    return bytes;
  }

  storage::Store& store_;
  const std::string name_;
  const Shape shape_;
  const std::size_t item_;
  std::vector<Box> boxes_;  // by group
};

}  // namespace

Result<ByteSpan> piece_cells(const PlannedArray& array, const LeftPiece& piece, Buffer& scratch) {
  const std::uint64_t bytes = (piece.range.end - piece.range.begin) * item_size(array.stored.dtype);
  CAIRN_TRY_ASSIGN(const MutableByteSpan to, scratch_of(scratch, bytes));
  std::size_t at = 0;
  for (const Box& run : flat_range_boxes(piece.box.shape(), piece.range.begin, piece.range.end)) {
    const Box box = run.moved_by(piece.box.begin);
    Buffer own;
    CAIRN_TRY_ASSIGN(const ByteSpan cells, array.source->chunk(box, box.shape(), own));
    std::memcpy(to.data() + at, cells.data(), cells.size());
    at += cells.size();
  }
  return ByteSpan(to);
}

Result<void> put_piece(storage::Store& store, const std::string& name, const LeftPiece& piece,
                       ByteSpan cells) {
  CAIRN_TRY(store.put(piece_key(name, piece.group, piece.number), cells));
  return {};
}

std::shared_ptr<const LeafSource> pieces_source(storage::Store& store, std::string name,
                                                const PlannedArray& array) {
  return std::make_shared<PiecesSource>(store, std::move(name), array);
}

}  // namespace cairn
