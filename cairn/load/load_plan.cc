// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cairn/array/flat_range.h"

namespace cairn {

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
    for (std::size_t first = 0; first < wanted_.size();) {
      std::size_t last = first;
      while (last < wanted_.size() && wanted_[last].array == wanted_[first].array) ++last;
      add_array(first, last);
      first = last;
    }
    make_runs();
    return std::move(plan_);
  }

 private:
  /// A chunk and a box that meets it.
  struct Meeting {
    std::uint64_t chunk = 0;
    std::size_t wanted = 0;
    auto operator<=>(const Meeting&) const = default;
  };

  // Boxes [first, last), all of one array.
  void add_array(std::size_t first, std::size_t last) {
    const format::StoredArray& stored = wanted_[first].array->stored;
    std::vector<Meeting> meetings;
    for (std::size_t i = first; i < last; ++i) {
      if (is_first_of_its_kind(first, i))
        plan_.wanted_bytes += wanted_[i].box.elements() * item_size(stored.dtype);
      for (const std::uint64_t chunk : stored.chunks_of(wanted_[i].box))
        meetings.push_back({chunk, i});
    }
    if (last - first > 1) std::ranges::sort(meetings);
    for (std::size_t at = 0; at < meetings.size();) {
      const std::size_t sharers = plan_.wanted.size();
      const std::uint64_t chunk = meetings[at].chunk;
      for (; at < meetings.size() && meetings[at].chunk == chunk; ++at)
        plan_.wanted.push_back(meetings[at].wanted);
      add_chunk(*wanted_[first].array, {sharers, plan_.wanted.size() - sharers, chunk, 0, 0});
    }
  }

  // Replicas of a box stand near each other, and a rank has few.
  bool is_first_of_its_kind(std::size_t first, std::size_t i) const {
    const auto begin = wanted_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto here = wanted_.begin() + static_cast<std::ptrdiff_t>(i);
    return std::find_if(begin, here,
                        [&](const WantedBox& other) { return other.box == here->box; }) == here;
  }

  void add_chunk(const ManifestArray& array, ReadJob job) {
    const format::StoredArray& stored = array.stored;
    const bool summed = !array.sums.empty();
    if (!reads_by_range(stored)) {
      job.end = summed              ? array.sums.lengths()[job.chunk]
                : stored.one_object ? stored.chunk_bytes()
                                    : kToTheEnd;
      plan_.jobs.push_back(job);
      plan_.bytes += job.end == kToTheEnd ? stored.chunk_bytes() : job.end;
      return;
    }
    const std::uint64_t block = check_ && summed ? array.sums.block_bytes() : 1;
    for (const Range& range : ranges_of(stored, job, block)) add_range(job, range);
  }

  // What the boxes need of a chunk, in order, rounded out to blocks and without overlap.
  std::vector<Range> ranges_of(const format::StoredArray& stored, const ReadJob& job,
                               std::uint64_t block) const {
    const Box cells = stored.chunk_box(job.chunk);
    std::vector<Range> ranges;
    for (const std::size_t i : plan_.wanted_of(job)) {
      const Box local = cells.intersect(wanted_[i].box).relative_to(cells.begin);
      const Runs runs(stored.chunk_shape, local, item_size(stored.dtype),
                      std::max(block, kCoalesceBytes));
      for (std::uint64_t n = 0; n < runs.size(); ++n) {
        const Range run = runs.run(n);
        ranges.push_back({run.begin / block * block,
                          std::min((run.end + block - 1) / block * block, stored.chunk_bytes())});
      }
    }
    std::ranges::sort(ranges, {}, &Range::begin);
    std::vector<Range> merged;
    for (const Range& range : ranges) {
      if (!merged.empty() && range.begin <= merged.back().end) {
        merged.back().end = std::max(merged.back().end, range.end);
      } else {
        merged.push_back(range);
      }
    }
    return merged;
  }

  void add_range(ReadJob job, Range range) {
    while (range.begin < range.end) {
      // Pieces end on multiples of the piece size, which are block and element boundaries too.
      const std::uint64_t cut = (range.begin / kReadPieceBytes + 1) * kReadPieceBytes;
      job.begin = range.begin;
      job.end = std::min(range.end, cut);
      plan_.jobs.push_back(job);
      plan_.bytes += job.end - job.begin;
      range.begin = job.end;
    }
  }

  const format::StoredArray& stored_of(const ReadJob& job) const {
    return wanted_[plan_.wanted[job.first_wanted]].array->stored;
  }

  // Tensors of one file that lie next to each other are read in one request.
  void make_runs() {
    std::ranges::stable_sort(plan_.jobs, [&](const ReadJob& a, const ReadJob& b) {
      const format::StoredArray& left = stored_of(a);
      const format::StoredArray& right = stored_of(b);
      if (!left.one_object || !right.one_object) return left.one_object < right.one_object;
      if (left.key != right.key) return left.key < right.key;
      return object_offset(left, a) < object_offset(right, b);
    });
    for (std::size_t i = 0; i < plan_.jobs.size(); ++i) {
      const ReadJob& job = plan_.jobs[i];
      const std::uint64_t bytes =
          job.end == kToTheEnd ? stored_of(job).chunk_bytes() : job.end - job.begin;
      if (const auto gap = gap_to_last_run(i)) {
        plan_.runs.back().bytes += *gap + bytes;
        plan_.bytes += *gap;
        ++plan_.runs.back().job_count;
      } else {
        plan_.runs.push_back({i, 1, bytes});
      }
    }
  }

  // Bytes between the last run and the job, if they may be read in one.
  std::optional<std::uint64_t> gap_to_last_run(std::size_t i) const {
    const ReadJob& job = plan_.jobs[i];
    const format::StoredArray& stored = stored_of(job);
    if (i == 0 || !stored.one_object) return std::nullopt;
    const ReadRun& run = plan_.runs.back();
    const ReadJob& first = plan_.jobs[run.first_job];
    if (!stored_of(first).one_object || stored_of(first).key != stored.key) return std::nullopt;
    const std::uint64_t end = object_offset(stored_of(first), first) + run.bytes;
    const std::uint64_t begin = object_offset(stored, job);
    if (begin < end || begin - end > kCoalesceBytes) return std::nullopt;
    if (begin - end + run.bytes + (job.end - job.begin) > kReadPieceBytes) return std::nullopt;
    return begin - end;
  }

  const std::vector<WantedBox>& wanted_;
  const bool check_;
  LoadPlan plan_;
};

}  // namespace

std::uint64_t object_offset(const format::StoredArray& array, const ReadJob& job) {
  return (array.one_object ? array.offset : 0) + job.begin;
}

bool reads_by_range(const format::StoredArray& array) {
  return array.plain() && !(array.fortran_order && array.shape.size() > 1);
}

PieceBoxes::PieceBoxes(const format::StoredArray& array)
    : array_(array),
      step_(reads_by_range(array) ? kReadPieceBytes / item_size(array.dtype) : kToTheEnd) {}

std::optional<Box> PieceBoxes::next() {
  if (ready_.empty()) {
    if (chunk_ == array_.chunk_count()) return std::nullopt;
    const Box chunk = array_.chunk_box(chunk_);
    const std::uint64_t elements = chunk.elements();
    const std::uint64_t end = element_ + std::min(step_, elements - element_);
    ready_ = flat_range_boxes(chunk.shape(), element_, end);
    for (Box& box : ready_) box = box.moved_by(chunk.begin);
    std::ranges::reverse(ready_);
    chunk_ += end == elements ? 1 : 0;
    element_ = end == elements ? 0 : end;
  }
  Box box = std::move(ready_.back());
  ready_.pop_back();
  return box;
}

LoadPlan plan_load(const std::vector<WantedBox>& wanted, bool check) {
  return Planner(wanted, check).plan();
}

}  // namespace cairn
