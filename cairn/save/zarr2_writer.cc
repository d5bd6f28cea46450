// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/zarr2_writer.h"

#include <set>
#include <utility>

#include "cairn/array/flat_range.h"
#include "cairn/async/mutex.h"
#include "cairn/base/sha256.h"
#include "cairn/base/uri.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/zarr2/group.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/manifest/names.h"
#include "cairn/save/leaf_source.h"

namespace cairn {

namespace {

constexpr std::uint64_t kNoChunk = ~std::uint64_t{0};

class Zarr2Writer final : public ArrayWriter {
 public:
  Zarr2Writer(std::vector<PlannedArray> arrays, const ArrayWriterOptions& options)
      : arrays_(std::move(arrays)), options_(options) {
    format::zarr2::Groups groups;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      add_jobs(i);
      groups_.push_back(groups.above(arrays_[i].stored.key));
    }
  }

  const std::vector<WriteJob>& jobs() const override { return jobs_; }
  const std::vector<WriteJob>& late_jobs() const override { return late_jobs_; }

  Result<ByteSpan> cells(const WriteJob& job, Buffer& scratch) const override {
    if (job.what == kNoChunk) return ByteSpan();
    const PlannedArray& array = arrays_[job.array];
    return array.source->chunk(array.stored.chunk_box(job.what), array.stored.chunk_shape, scratch)
        .in([&] { return "leaf " + array.path.text(); });
  }

  void forget_changing_arrays() override { forget_changing(arrays_); }

  Result<void> open(const WriterStores& stores) override {
    store_ = stores.data;
    return {};
  }

  Result<void> write(const WriteJob& job, ByteSpan cells) override {
    const PlannedArray& array = arrays_[job.array];
    return write_here(job, array.stored, cells).in([&] { return "leaf " + array.path.text(); });
  }

  Result<WrittenSums> take_sums() override {
    MutexLock lock(mutex_);
    return std::exchange(sums_, {});
  }

  Result<void> finish(Manifest& manifest, WrittenSums sums) override {
    manifest.arrays.reserve(arrays_.size());
    for (const PlannedArray& array : arrays_) {
      manifest.arrays.push_back(
          {array.path, array.stored, array.cast_from, {}, {}, spec_of(array.sharding)});
    }
    return join_sums(std::move(sums), manifest.arrays);
  }

  std::string manifest_name() const override { return zarr2_manifest_name(options_.prefix); }

  std::vector<std::string> entries() const override {
    if (!options_.prefix.empty()) return {prefix_directory(options_.prefix)};
    std::set<std::string> names{manifest_name()};
    if (!arrays_.empty()) names.emplace(format::zarr2::kGroupName);
    for (const PlannedArray& array : arrays_) {
      names.insert(array.stored.key.substr(0, array.stored.key.find('/')));
    }
    return {names.begin(), names.end()};
  }

 private:
  void add_jobs(std::size_t i) {
    format::StoredArray& stored = arrays_[i].stored;
    stored.key = arrays_[i].path.directory();
    const std::size_t item = item_size(stored.dtype);
    const std::uint64_t elements = Box::whole(stored.chunk_shape).elements();
    const WriteJob job{.array = i,
                       .cell_bytes = elements * item,
                       .make_bytes = arrays_[i].source->scratch_bytes(elements),
                       .encode_bytes = stored.plain() ? 0 : stored.chunk_memory_bytes(),
                       .immutable = arrays_[i].source->immutable()};
    for (const std::uint64_t chunk : arrays_[i].work.chunks) {
      jobs_.push_back(job);
      jobs_.back().what = chunk;
      jobs_.back().bytes = stored.chunk_box(chunk).elements() * item;
    }
    // An array without elements still has its metadata to write.
    if (options_.rank == 0 && stored.chunk_count() == 0)
      jobs_.push_back({.array = i, .what = kNoChunk});
  }

  std::string object_key(std::string_view directory, std::string_view name) const {
    return join_path(join_path(prefix_directory(options_.prefix), directory), name);
  }

  Result<void> write_metadata(std::size_t i) {
    const format::StoredArray& stored = arrays_[i].stored;
    CAIRN_TRY_ASSIGN(const std::string text, format::zarr2::dump_metadata(stored));
    CAIRN_TRY(put_once(object_key(stored.key, format::zarr2::kMetadataName), text));
    for (const std::string& group : groups_[i]) {
      CAIRN_TRY(
          put_once(object_key(group, format::zarr2::kGroupName), format::zarr2::kGroupMetadata));
    }
    return {};
  }

  // Each name is written once. One that is there already was another name for us.
  Result<void> put_once(const std::string& key, std::string_view text) {
    const auto done = store_->put(key, as_bytes(text), {.absent = true});
    if (done) return {};
    if (done.error().reason() != "storage/condition-failed") return done.error();
    return Error(Code::kFailedPrecondition, "layout/one-name",
                 "on this file system the name is the same as that of another leaf or "
                 "container, which differs in upper and lower case or in the form of "
                 "Unicode; rename one, or save with the layout safetensors")
        .in(store_->describe(key));
  }

  Result<void> write_here(const WriteJob& job, const format::StoredArray& stored, ByteSpan cells) {
    if (job.what == 0 || job.what == kNoChunk) CAIRN_TRY(write_metadata(job.array));
    if (job.what == kNoChunk) return {};
    CAIRN_TRY_ASSIGN(const auto codec, format::ChunkCodec::make(stored));
    CAIRN_TRY_ASSIGN(const Buffer encoded, codec.encode(cells));
    const SummedRange range{.array = static_cast<std::uint32_t>(job.array), .chunk = job.what};
    WrittenSums sums;
    CAIRN_TRY(write_object(object_key(stored.key, stored.chunk_name(job.what)), encoded.bytes(),
                           range, sums.ranges));
    if (options_.with_sha256 && !arrays_[job.array].work.hasher) {
      sums.hashes.push_back(
          {range.array, job.what, job.what + 1, hash_chunk(stored, job.what, cells)});
    }
    MutexLock lock(mutex_);
    sums_.add(sums);
    return {};
  }

  // Only of the cells that lie inside the array.
  static Sha256Digest hash_chunk(const format::StoredArray& stored, std::uint64_t chunk,
                                 ByteSpan cells) {
    const std::size_t item = item_size(stored.dtype);
    const Box box = Box::whole(stored.chunk_box(chunk).shape());
    Sha256 sha;
    each_run(stored.chunk_shape, box, [&](const Box& run) {
      sha.update(
          cells.subspan(flat_index(stored.chunk_shape, run.begin) * item, run.elements() * item));
    });
    return sha.digest();
  }

  Result<void> write_object(const std::string& key, ByteSpan bytes, const SummedRange& range,
                            std::vector<SummedRange>& sums) {
    if (bytes.size() <= kBlockBytes) {
      return sum_ranges(range, 0, bytes, sums, [&](std::uint64_t, ByteSpan all) -> Result<void> {
        CAIRN_TRY(store_->put(key, all));
        return {};
      });
    }
    CAIRN_TRY_ASSIGN(const auto out, store_->create(key, bytes.size()));
    CAIRN_TRY(sum_ranges(range, 0, bytes, sums, [&](std::uint64_t at, ByteSpan block) {
      return out->write_at(at, block);
    }));
    return out->finish();
  }

  std::vector<PlannedArray> arrays_;
  ArrayWriterOptions options_;
  /// Of each array, those that it is the first in. All ranks have the same arrays: one writes it.
  std::vector<std::vector<std::string>> groups_;
  storage::Store* store_ = nullptr;
  std::vector<WriteJob> jobs_;
  const std::vector<WriteJob> late_jobs_;  // chunks have one writer each: there are none
  Mutex mutex_;
  WrittenSums sums_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<ArrayWriter>> make_zarr2_writer(std::vector<PlannedArray> arrays,
                                                       const ArrayWriterOptions& options) {
  for (const PlannedArray& array : arrays) {
    CAIRN_TRY(array.path.check());
    if (array.path.empty() && options.prefix.empty()) {
      return Error(Code::kInvalidArgument, "layout/root-array",
                   "a tree that is one array needs a prefix, which becomes its directory");
    }
  }
  return std::unique_ptr<ArrayWriter>(std::make_unique<Zarr2Writer>(std::move(arrays), options));
}

}  // namespace cairn
