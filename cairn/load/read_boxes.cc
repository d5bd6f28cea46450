// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/read_boxes.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cairn/array/array.h"
#include "cairn/array/cast.h"
#include "cairn/array/flat_range.h"
#include "cairn/array/strided_copy.h"
#include "cairn/async/mutex.h"
#include "cairn/base/crc32c.h"
#include "cairn/base/uri.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/expansion.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/runtime/progress.h"

namespace cairn {

namespace {

std::string describe(const ManifestArray& array, std::uint64_t chunk) {
  return array.stored.one_object ? "the tensor" : "chunk " + array.stored.chunk_name(chunk);
}

/// Where one chunk's elements come from and which of them go where.
class Scatter {
 public:
  Scatter(const BoxTarget& target, std::uint64_t chunk)
      : stored_(target.wanted.array->stored),
        target_(target),
        cells_(stored_.chunk_box(chunk)),
        strides_(stored_.chunk_strides()) {}

  /// Part of the chunk that is wanted, seen from the chunk's first cell.
  Box wanted() const { return cells_.intersect(target_.wanted.box).relative_to(cells_.begin); }

  /// `from` holds the chunk's cell at index 0 and goes on with chunk_strides(); `box` is seen from
  /// there.
  Result<void> copy(const Box& box, const std::byte* from) const {
    if (box.empty()) return {};
    Array to = destination(box);
    const DType dtype = stored_.dtype;
    const ConstStridedSpan source{from + byte_offset(box.begin, strides_), &strides_};
    if (to.dtype() == dtype) {
      copy_strided(box.shape(), item_size(dtype), source, {to.mutable_data(), &to.strides()});
      return {};
    }
    CAIRN_TRY_ASSIGN(Array dense, Array::allocate(dtype, box.shape()));
    copy_strided(box.shape(), item_size(dtype), source, {dense.mutable_data(), &dense.strides()});
    CAIRN_TRY_ASSIGN(const Array cast, cast_array(dense, to.dtype()));
    return copy_array(cast, to);
  }

  /// The place of a box of the chunk in the caller's memory.
  Array destination(const Box& box) const {
    return target_.to.slice(box.moved_by(cells_.begin).relative_to(target_.wanted.box.begin));
  }

 private:
  const format::StoredArray& stored_;
  const BoxTarget& target_;
  Box cells_;
  Strides strides_;
};

class Reader {
 public:
  Reader(storage::Store& store, const std::vector<BoxTarget>& targets, const LoadPlan& plan,
         const ReadOptions& options, Runtime& runtime)
      : store_(store), targets_(targets), plan_(plan), options_(options), runtime_(runtime) {}

  Result<void> run(const ReadRun& run) {
    if (run.job_count > 1) return read_together(run);
    const ReadJob& job = plan_.jobs[run.first_job];
    return read(job, array_of(job)).in([&] { return place_of(job); });
  }

  /// After all runs. A chunk that is missing holds the fill value; but all of them are missing when
  /// somebody deletes the checkpoint of another system, which has no sums to tell.
  Result<void> check_not_removed() {
    if (!filled_) return {};
    std::set<std::string> seen;
    for (const BoxTarget& target : targets_) {
      const format::StoredArray& stored = target.wanted.array->stored;
      if (stored.one_object || !seen.insert(stored.key).second) continue;
      const std::string metadata = join_path(stored.key, format::zarr2::kMetadataName);
      const auto there = store_.stat(metadata);
      if (there || there.error().code() != Code::kNotFound) continue;
      return Error(Code::kUnavailable, "storage/replaced", "it was removed while it was read")
          .in(store_.describe(metadata));
    }
    return {};
  }

 private:
  using Object = std::shared_ptr<storage::ObjectReader>;

  const ManifestArray& array_of(const ReadJob& job) const {
    return *targets_[plan_.wanted[job.first_wanted]].wanted.array;
  }

  std::string place_of(const ReadJob& job) const {
    const ManifestArray& array = array_of(job);
    return fmt::format("leaf {}: {}", array.path.text(),
                       store_.describe(array.stored.chunk_key(job.chunk)));
  }

  Result<void> read(const ReadJob& job, const ManifestArray& array) {
    auto object = open(array.stored, job.chunk);
    if (!object) {
      const bool missing = object.error().code() == Code::kNotFound && !array.stored.one_object;
      if (!missing) return std::move(object).error();
      if (array.sums.empty()) {
        filled_ = true;
        return fill(job, array.stored);
      }
      return Error(
          Code::kCorrupt, "load/chunk-missing",
          describe(array, job.chunk) + " is missing, but the manifest says that it was written");
    }
    if (!array.stored.one_object) CAIRN_TRY(check_length(**object, array, job.chunk));
    CAIRN_TRY_ASSIGN(const bool done, read_in_place(**object, job, array));
    if (done) return {};
    const std::uint64_t length = (job.end == kToTheEnd ? (*object)->size() : job.end) - job.begin;
    const std::uint64_t memory = length + memory_of(job, array);
    CAIRN_TRY(check_possible_memory(memory, describe(array, job.chunk)));
    const ByteBudget::Lease lease = runtime_.budget().acquire(memory);
    CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::allocate(length));
    CAIRN_TRY((*object)->read_at(object_offset(array.stored, job), bytes.mutable_bytes()));
    return scatter(job, array, bytes.bytes());
  }

  // Small tensors of one file, next to each other.
  Result<void> read_together(const ReadRun& run) {
    const ReadJob& first = plan_.jobs[run.first_job];
    const ReadJob& last = plan_.jobs[run.first_job + run.job_count - 1];
    const std::uint64_t begin = object_offset(array_of(first).stored, first);
    const std::uint64_t end = object_offset(array_of(last).stored, last) + (last.end - last.begin);
    std::uint64_t memory = end - begin;
    for (std::size_t i = 0; i < run.job_count; ++i) {
      const ReadJob& job = plan_.jobs[run.first_job + i];
      memory += memory_of(job, array_of(job));
    }
    const ByteBudget::Lease lease = runtime_.budget().acquire(memory);
    Buffer bytes;
    CAIRN_TRY([&]() -> Result<void> {
      CAIRN_TRY_ASSIGN(const Object object, open(array_of(first).stored, first.chunk));
      CAIRN_TRY_ASSIGN(bytes, Buffer::allocate(end - begin));
      return object->read_at(begin, bytes.mutable_bytes());
    }()
                           .in([&] { return place_of(first); }));
    for (std::size_t i = 0; i < run.job_count; ++i) {
      const ReadJob& job = plan_.jobs[run.first_job + i];
      const ManifestArray& array = array_of(job);
      const ByteSpan mine =
          bytes.bytes().subspan(object_offset(array.stored, job) - begin, job.end - job.begin);
      CAIRN_TRY(scatter(job, array, mine).in([&] { return place_of(job); }));
    }
    return {};
  }

  // Objects that hold whole arrays are opened once; chunks are opened when their turn comes.
  Result<Object> open(const format::StoredArray& stored, std::uint64_t chunk) {
    if (!stored.one_object) {
      CAIRN_TRY_ASSIGN(auto object, store_.open(stored.chunk_key(chunk)));
      return Object(std::move(object));
    }
    MutexLock lock(mutex_);
    Object& object = open_[stored.key];
    if (!object) {
      CAIRN_TRY_ASSIGN(auto opened, store_.open(stored.key));
      object = std::move(opened);
    }
    return object;
  }

  static Result<void> check_length(const storage::ObjectReader& object, const ManifestArray& array,
                                   std::uint64_t chunk) {
    if (array.sums.empty()) return format::check_expansion(array.stored, object.size());
    const std::uint64_t expected = array.sums.lengths()[chunk];
    if (object.size() == expected) return format::check_expansion(array.stored, expected);
    return Error(Code::kCorrupt, "load/chunk-length",
                 fmt::format("{} has {} bytes; {} were written", describe(array, chunk),
                             object.size(), expected));
  }

  Result<void> fill(const ReadJob& job, const format::StoredArray& stored) {
    for (const std::size_t i : plan_.wanted_of(job)) {
      const Scatter scatter(targets_[i], job.chunk);
      Array to = scatter.destination(scatter.wanted());
      if (to.dtype() == stored.dtype && to.dense()) {
        format::fill_cells(stored, to.mutable_bytes());
        continue;
      }
      CAIRN_TRY_ASSIGN(Array cell, Array::allocate(stored.dtype, {}));
      format::fill_cells(stored, cell.mutable_bytes());
      CAIRN_TRY_ASSIGN(const Array cast, cast_array(cell, to.dtype()));
      const Strides nowhere(to.shape().size(), 0);
      copy_strided(to.shape(), item_size(to.dtype()), {cast.data(), &nowhere},
                   {to.mutable_data(), &to.strides()});
    }
    return {};
  }

  // Beside the bytes themselves: a chunk that must be decoded, and casts.
  std::uint64_t memory_of(const ReadJob& job, const ManifestArray& array) const {
    const auto casts = [&](std::size_t i) { return targets_[i].to.dtype() != array.stored.dtype; };
    const std::uint64_t decoded =
        reads_by_range(array.stored) ? 0 : array.stored.chunk_memory_bytes();
    const std::uint64_t cells = decoded != 0 ? decoded : job.end - job.begin;
    return decoded + (std::ranges::any_of(plan_.wanted_of(job), casts) ? 5 * cells : 0);
  }

  // The boxes of a range of a chunk that a target wants, seen from the chunk.
  static std::vector<Box> wanted_boxes(const Scatter& scatter, const format::StoredArray& stored,
                                       std::uint64_t begin, std::uint64_t end) {
    std::vector<Box> boxes;
    const Box wanted = scatter.wanted();
    for (const Box& box : flat_range_boxes(stored.chunk_shape, begin, end)) {
      Box common = box.intersect(wanted);
      if (!common.empty()) boxes.push_back(std::move(common));
    }
    return boxes;
  }

  // Straight into the destination, where only one wants the range and it is one run there too.
  Result<bool> read_in_place(storage::ObjectReader& object, const ReadJob& job,
                             const ManifestArray& array) {
    const format::StoredArray& stored = array.stored;
    if (job.wanted_count > 1 || !reads_by_range(stored)) return false;
    const Scatter scatter(targets_[plan_.wanted[job.first_wanted]], job.chunk);
    const std::size_t item = item_size(stored.dtype);
    const auto boxes = wanted_boxes(scatter, stored, job.begin / item, job.end / item);
    if (boxes.size() != 1 || boxes[0].elements() * item != job.end - job.begin) return false;
    Array to = scatter.destination(boxes[0]);
    if (to.dtype() != stored.dtype || !to.dense()) return false;
    CAIRN_TRY(object.read_at(object_offset(stored, job), to.mutable_bytes()));
    CAIRN_TRY(check(array, job, to.bytes()));
    return true;
  }

  Result<void> scatter(const ReadJob& job, const ManifestArray& array, ByteSpan bytes) {
    CAIRN_TRY(check(array, job, bytes));
    return reads_by_range(array.stored) ? scatter_range(job, array.stored, bytes)
                                        : scatter_chunk(job, array.stored, bytes);
  }

  Result<void> scatter_range(const ReadJob& job, const format::StoredArray& stored,
                             ByteSpan bytes) {
    const std::size_t item = item_size(stored.dtype);
    const std::byte* chunk_start = bytes.data() - job.begin;
    for (const std::size_t i : plan_.wanted_of(job)) {
      const Scatter scatter(targets_[i], job.chunk);
      for (const Box& box : wanted_boxes(scatter, stored, job.begin / item, job.end / item))
        CAIRN_TRY(scatter.copy(box, chunk_start));
    }
    return {};
  }

  Result<void> scatter_chunk(const ReadJob& job, const format::StoredArray& stored,
                             ByteSpan bytes) {
    CAIRN_TRY_ASSIGN(const auto codec, format::ChunkCodec::make(stored));
    if (job.wanted_count == 1) {
      const Scatter scatter(targets_[plan_.wanted[job.first_wanted]], job.chunk);
      const Box wanted = scatter.wanted();
      Array to = scatter.destination(wanted);
      if (wanted.shape() == stored.chunk_shape && to.dtype() == stored.dtype && to.dense() &&
          !stored.fortran_order) {
        return codec.decode(bytes, to.mutable_bytes());
      }
    }
    CAIRN_TRY_ASSIGN(Buffer cells, Buffer::allocate(stored.chunk_memory_bytes()));
    CAIRN_TRY(codec.decode(bytes, cells.mutable_bytes()));
    for (const std::size_t i : plan_.wanted_of(job)) {
      const Scatter scatter(targets_[i], job.chunk);
      CAIRN_TRY(scatter.copy(scatter.wanted(), cells.data()));
    }
    return {};
  }

  Result<void> check(const ManifestArray& array, const ReadJob& job, ByteSpan bytes) const {
    if (!options_.check || array.sums.empty()) return {};
    return check_blocks(array, job.chunk, job.begin, bytes);
  }

  storage::Store& store_;
  const std::vector<BoxTarget>& targets_;
  const LoadPlan& plan_;
  const ReadOptions& options_;
  Runtime& runtime_;
  std::atomic<bool> filled_ = false;
  Mutex mutex_;
  std::unordered_map<std::string, Object> open_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace

Result<void> check_blocks(const ManifestArray& array, std::uint64_t chunk, std::uint64_t begin,
                          ByteSpan bytes) {
  const std::uint64_t block_bytes = array.sums.block_bytes();
  std::uint64_t block = begin / block_bytes;
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes, ++block) {
    const std::size_t size = std::min<std::size_t>(block_bytes, bytes.size() - at);
    const std::uint32_t found = crc32c(bytes.subspan(at, size));
    const std::uint32_t expected = array.sums.crc(chunk, block);
    if (found == expected) continue;
    return Error(
        Code::kCorrupt, "load/checksum",
        fmt::format("{}, bytes {} to {}: checksum {:08x}, expected {:08x}; the file was damaged "
                    "after it was saved",
                    describe(array, chunk), begin + at, begin + at + size, found, expected));
  }
  return {};
}

Result<void> read_boxes(storage::Store& store, const std::vector<BoxTarget>& targets,
                        const ReadOptions& options, Runtime& runtime) {
  std::vector<WantedBox> wanted;
  wanted.reserve(targets.size());
  for (const BoxTarget& target : targets) wanted.push_back(target.wanted);
  const LoadPlan plan = plan_load(wanted, options.check);
  Reader reader(store, targets, plan, options, runtime);
  Progress progress(options.progress, plan.bytes);
  const auto done =
      for_each_index(runtime.executor(), plan.runs.size(), [&](std::size_t i) -> Result<void> {
        CAIRN_TRY(reader.run(plan.runs[i]));
        progress.add(plan.runs[i].bytes);
        return {};
      });
  return done ? reader.check_not_removed() : done;
}

Result<Array> load_box(const OpenedPrefix& prefix, std::size_t which, const Box& box,
                       Runtime& runtime, bool check) {
  const ManifestArray& array = prefix.manifest.arrays[which];
  CAIRN_TRY(check_possible_memory(box.elements() * item_size(array.stored.dtype),
                                  "leaf " + array.path.text(), "take a part of it"));
  CAIRN_TRY_ASSIGN(Array result, Array::allocate(array.stored.dtype, box.shape()));
  std::vector<BoxTarget> targets{{{&array, box}, result}};
  CAIRN_TRY(read_boxes(*prefix.store, targets, {.check = check, .progress = {}}, runtime));
  return result;
}

}  // namespace cairn
