// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/load_plan.h"

#include <algorithm>
#include <utility>

#include "cairn/array/flat_range.h"

namespace cairn::inline checkpoint {

namespace {

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The bytes of a box inside a dense C-order chunk, as runs that are at least `gap` apart.
/// Dimensions are folded from the inside out while steps along them leave gaps smaller than that,
/// so that the number of runs is bounded by the bytes between them and not by the rows.
class Runs {
 public:
  Runs(const Shape& chunk, const Box& box, std::size_t item, std::uint64_t gap) {
    run_ = item;
    std::uint64_t step = item;
    for (std::size_t d = chunk.size(); d-- > 0;) {
      const auto count = static_cast<std::uint64_t>(box.end[d] - box.begin[d]);
      first_ += static_cast<std::uint64_t>(box.begin[d]) * step;
      if (count > 1) {
        if (counts_.empty() && step - run_ < gap) {
          run_ += (count - 1) * step;
        } else {
          counts_.push_back(count);
          steps_.push_back(step);
        }
      }
      step *= static_cast<std::uint64_t>(chunk[d]);
    }
  }

  std::uint64_t size() const {
    std::uint64_t runs = 1;
    for (const std::uint64_t count : counts_) runs *= count;
    return runs;
  }

  Range run(std::uint64_t n) const {
    std::uint64_t begin = first_;
    for (std::size_t d = 0; d < counts_.size(); ++d) {  // innermost first
      begin += n % counts_[d] * steps_[d];
      n /= counts_[d];
    }
    return {begin, begin + run_};
  }

 private:
  std::uint64_t first_ = 0;
  std::uint64_t run_ = 0;
  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> steps_;
};

class Planner {
 public:
  Planner(const std::vector<WantedBox>& wanted, bool check) : wanted_(wanted), check_(check) {}

  LoadPlan plan() {
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const WantedBox& want = wanted_[i];
      if (want.box.empty()) continue;
      plan_.wanted_bytes += want.box.elements() * item_size(want.array->stored.dtype);
      for (const std::uint64_t chunk : want.array->stored.chunks_of(want.box)) add_chunk(i, chunk);
    }
    return std::move(plan_);
  }

 private:
  void add_chunk(std::size_t i, std::uint64_t chunk) {
    const ManifestArray& array = *wanted_[i].array;
    const format::StoredArray& stored = array.stored;
    const bool summed = !array.sums.empty();
    if (!reads_by_range(stored)) {
      const std::uint64_t length = summed              ? array.sums.lengths()[chunk]
                                   : stored.one_object ? stored.chunk_bytes()
                                                       : kToTheEnd;
      plan_.jobs.push_back({i, chunk, 0, length});
      plan_.bytes += length == kToTheEnd ? stored.chunk_bytes() : length;
      return;
    }
    const Box cells = stored.chunk_box(chunk);
    const Box local = cells.intersect(wanted_[i].box).relative_to(cells.begin);
    const std::uint64_t block = check_ && summed ? array.sums.block_bytes() : 1;
    const Runs runs(stored.chunk_shape, local, item_size(stored.dtype),
                    std::max(block, kCoalesceBytes));
    Range open{0, 0};
    for (std::uint64_t n = 0; n < runs.size(); ++n) {
      Range range = runs.run(n);
      range.begin = range.begin / block * block;
      range.end = std::min((range.end + block - 1) / block * block, stored.chunk_bytes());
      if (range.begin <= open.end && open.end != 0) {
        open.end = std::max(open.end, range.end);
      } else {
        add_range(i, chunk, open);
        open = range;
      }
    }
    add_range(i, chunk, open);
  }

  void add_range(std::size_t i, std::uint64_t chunk, Range range) {
    while (range.begin < range.end) {
      // Pieces end on multiples of the piece size, which are block and element boundaries too.
      const std::uint64_t cut = (range.begin / kReadPieceBytes + 1) * kReadPieceBytes;
      const std::uint64_t end = std::min(range.end, cut);
      plan_.jobs.push_back({i, chunk, range.begin, end});
      plan_.bytes += end - range.begin;
      range.begin = end;
    }
  }

  const std::vector<WantedBox>& wanted_;
  const bool check_;
  LoadPlan plan_;
};

}  // namespace

bool reads_by_range(const format::StoredArray& array) {
  return array.plain() && !(array.fortran_order && array.shape.size() > 1);
}

std::vector<Box> piece_boxes(const format::StoredArray& array) {
  std::vector<Box> pieces;
  const std::uint64_t step = kReadPieceBytes / item_size(array.dtype);
  for (std::uint64_t n = 0; n < array.chunk_count(); ++n) {
    const Box chunk = array.chunk_box(n);
    const std::uint64_t elements = chunk.elements();
    if (!reads_by_range(array) || elements <= step) {
      pieces.push_back(chunk);
      continue;
    }
    for (std::uint64_t at = 0; at < elements; at += step) {
      for (Box& box : flat_range_boxes(chunk.shape(), at, std::min(at + step, elements))) {
        for (std::size_t d = 0; d < box.rank(); ++d) {
          box.begin[d] += chunk.begin[d];
          box.end[d] += chunk.begin[d];
        }
        pieces.push_back(std::move(box));
      }
    }
  }
  return pieces;
}

LoadPlan plan_load(const std::vector<WantedBox>& wanted, bool check) {
  return Planner(wanted, check).plan();
}

}  // namespace cairn::inline checkpoint
