// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/stored_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cairn/array/array.h"
#include "cairn/array/flat_range.h"
#include "cairn/load/read_boxes.h"

namespace cairn {

namespace {

class StoredSource final : public LeafSource {
 public:
  StoredSource(const OpenedPrefix& prefix, std::size_t array, DType dtype, Runtime& runtime)
      : prefix_(prefix), array_(prefix.manifest.arrays[array]), dtype_(dtype), runtime_(runtime) {}

  Result<ByteSpan> range(std::uint64_t begin, std::uint64_t end, Buffer& scratch) const override {
    const std::size_t item = item_size(dtype_);
    CAIRN_TRY(scratch_of(scratch, (end - begin) * item));
    std::vector<BoxTarget> targets;
    std::size_t at = 0;
    for (Box& box : flat_range_boxes(array_.stored.shape, begin, end)) {
      const std::size_t size = box.elements() * item;
      CAIRN_TRY_ASSIGN(Array to, Array::wrap(dtype_, box.shape(), scratch.slice(at, size)));
      targets.push_back({{&array_, std::move(box)}, std::move(to)});
      at += size;
    }
    return read(targets, scratch.slice(0, at));
  }

  Result<ByteSpan> chunk(const Box& box, const Shape& chunk_shape, Buffer& scratch) const override {
    const std::size_t item = item_size(dtype_);
    CAIRN_TRY_ASSIGN(const MutableByteSpan cells,
                     scratch_of(scratch, Box::whole(chunk_shape).elements() * item));
    std::ranges::fill(cells, std::byte{0});
    CAIRN_TRY_ASSIGN(Array to, Array::wrap_strided(dtype_, box.shape(),
                                                   dense_strides(chunk_shape, item), scratch));
    return read({{{&array_, box}, std::move(to)}}, scratch.slice(0, cells.size()));
  }

  std::uint64_t scratch_bytes(std::uint64_t elements) const override {
    return elements * item_size(dtype_);
  }
  bool immutable() const override { return true; }

 private:
  Result<ByteSpan> read(const std::vector<BoxTarget>& targets, const Buffer& scratch) const {
    CAIRN_TRY(read_boxes(*prefix_.store, targets, {}, runtime_));
    return scratch.bytes();
  }

  const OpenedPrefix& prefix_;
  const ManifestArray& array_;
  const DType dtype_;
  Runtime& runtime_;
};

}  // namespace

std::shared_ptr<const LeafSource> stored_source(const OpenedPrefix& prefix, std::size_t array,
                                                DType dtype, Runtime& runtime) {
  return std::make_shared<StoredSource>(prefix, array, dtype, runtime);
}

}  // namespace cairn
