// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/leaf_source.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "cairn/array/array.h"
#include "cairn/array/cast.h"
#include "cairn/array/flat_range.h"
#include "cairn/array/strided_copy.h"

namespace cairn {

namespace {

class MemorySource final : public LeafSource {
 public:
  MemorySource(ShardedArray array, DType dtype);

  Result<ByteSpan> range(std::uint64_t begin, std::uint64_t end, Buffer& scratch) const override;
  Result<ByteSpan> chunk(const Box& box, const Shape& chunk_shape, Buffer& scratch) const override;
  std::uint64_t scratch_bytes(std::uint64_t elements) const override;
  bool immutable() const override;

 private:
  std::optional<ByteSpan> find(std::span<const Box> boxes) const;
  /// How many elements were there.
  std::uint64_t gather(const Box& box, std::byte* to, const Strides& strides) const;
  Result<ByteSpan> cast(ByteSpan cells, Buffer& scratch) const;
  template <typename Gather>
  Result<ByteSpan> make(std::uint64_t elements, Buffer& scratch, const Gather& gather_all) const;

  const ShardedArray array_;
  const DType dtype_;
  std::vector<const Shard*> parts_;  // one of each box
};

MemorySource::MemorySource(ShardedArray array, DType dtype)
    : array_(std::move(array)), dtype_(dtype) {
  for (const Shard& shard : array_.shards()) parts_.push_back(&shard);
  const DeviceGroups& groups = array_.sharding().groups(array_.shape());
  const auto box_number = [&](const Shard* part) { return groups.group_of(part->position); };
  std::ranges::sort(parts_, {},
                    [&](const Shard* part) { return std::pair(box_number(part), part); });
  const auto replicas = std::ranges::unique(parts_, {}, box_number);
  parts_.erase(replicas.begin(), replicas.end());
}

std::uint64_t MemorySource::scratch_bytes(std::uint64_t elements) const {
  const std::uint64_t gathered = elements * item_size(array_.dtype());
  return dtype_ == array_.dtype() ? gathered : gathered + elements * item_size(dtype_);
}

bool MemorySource::immutable() const {
  return std::ranges::all_of(parts_,
                             [](const Shard* shard) { return shard->data.buffer().immutable(); });
}

// Boxes that follow each other in C order, if they lie so in the memory of one shard.
std::optional<ByteSpan> MemorySource::find(std::span<const Box> boxes) const {
  if (boxes.empty()) return ByteSpan();
  for (const Shard* part : parts_) {
    const Box held = array_.box_of(*part);
    if (!held.contains(boxes.front())) continue;
    const std::byte* first = nullptr;
    std::size_t size = 0;
    for (const Box& box : boxes) {
      if (!held.contains(box)) return std::nullopt;
      const Array cells = part->data.slice(box.relative_to(held.begin));
      if (size == 0) first = cells.data();
      if (!cells.dense() || cells.data() != first + size) return std::nullopt;
      size += static_cast<std::size_t>(cells.nbytes());
    }
    return ByteSpan(first, size);
  }
  return std::nullopt;
}

// `to` is where the element at box.begin goes.
std::uint64_t MemorySource::gather(const Box& box, std::byte* to, const Strides& strides) const {
  const std::size_t item = item_size(array_.dtype());
  std::uint64_t copied = 0;
  for (const Shard* shard : parts_) {
    const Box held = array_.box_of(*shard);
    const Box common = box.intersect(held);
    if (common.empty()) continue;
    const Array part = shard->data.slice(common.relative_to(held.begin));
    std::byte* target = to + byte_offset(common.relative_to(box.begin).begin, strides);
    copy_strided(part.shape(), item, {part.data(), &part.strides()}, {target, &strides});
    copied += common.elements();
  }
  return copied;
}

Result<ByteSpan> MemorySource::cast(ByteSpan cells, Buffer& scratch) const {
  if (dtype_ == array_.dtype()) return cells;
  const std::size_t elements = cells.size() / item_size(array_.dtype());
  CAIRN_TRY_ASSIGN(const MutableByteSpan to, scratch_of(scratch, elements * item_size(dtype_)));
  cast_elements(array_.dtype(), cells, dtype_, to);
  return ByteSpan(to);
}

// `gather_all` says how many elements it found; if not all, the others are zero.
template <typename Gather>
Result<ByteSpan> MemorySource::make(std::uint64_t elements, Buffer& scratch,
                                    const Gather& gather_all) const {
  Buffer own;
  const bool casts = dtype_ != array_.dtype();
  CAIRN_TRY_ASSIGN(const MutableByteSpan gathered,
                   scratch_of(casts ? own : scratch, elements * item_size(array_.dtype())));
  if (gather_all(gathered.data()) < elements) {
    std::ranges::fill(gathered, std::byte{0});
    gather_all(gathered.data());
  }
  return cast(gathered, scratch);
}

Result<ByteSpan> MemorySource::range(std::uint64_t begin, std::uint64_t end,
                                     Buffer& scratch) const {
  const std::size_t item = item_size(array_.dtype());
  const std::vector<Box> boxes = flat_range_boxes(array_.shape(), begin, end);
  if (const auto cells = find(boxes)) return cast(*cells, scratch);
  const Strides strides = dense_strides(array_.shape(), item);
  return make(end - begin, scratch, [&](std::byte* to) {
    std::uint64_t copied = 0;
    for (const Box& box : boxes) {
      const std::uint64_t first = flat_index(array_.shape(), box.begin) - begin;
      copied += gather(box, to + first * item, strides);
    }
    return copied;
  });
}

Result<ByteSpan> MemorySource::chunk(const Box& box, const Shape& chunk_shape,
                                     Buffer& scratch) const {
  if (box.shape() == chunk_shape) {
    if (const auto cells = find({&box, 1})) return cast(*cells, scratch);
  }
  const Strides strides = dense_strides(chunk_shape, item_size(array_.dtype()));
  return make(Box::whole(chunk_shape).elements(), scratch,
              [&](std::byte* to) { return gather(box, to, strides); });
}

}  // namespace

Result<MutableByteSpan> scratch_of(Buffer& scratch, std::uint64_t bytes) {
  if (scratch.size() < bytes) {
    CAIRN_TRY_ASSIGN(scratch, Buffer::allocate(bytes));
  }
  return scratch.mutable_bytes().first(bytes);
}

std::shared_ptr<const LeafSource> memory_source(ShardedArray array, DType dtype) {
  return std::make_shared<MemorySource>(std::move(array), dtype);
}

}  // namespace cairn
