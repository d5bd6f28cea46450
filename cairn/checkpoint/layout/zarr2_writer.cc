// SPDX-License-Identifier: Apache-2.0
// The layout of JAX and of the reference system: an array at key path a.b is the directory
// <prefix>/a/b with `.zarray` and one object a chunk.
#include <set>
#include <utility>

#include "cairn/base/uri.h"
#include "cairn/checkpoint/layout/array_writer.h"
#include "cairn/checkpoint/leaf_source.h"
#include "cairn/checkpoint/names.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/zarr2/metadata.h"

namespace cairn::inline checkpoint {

namespace {

struct Sums {
  std::vector<std::uint64_t> lengths;
  std::vector<std::vector<std::uint32_t>> crcs;
};

class Zarr2Writer final : public ArrayWriter {
 public:
  Zarr2Writer(std::vector<PlannedArray> arrays, const ArrayWriterOptions& options)
      : arrays_(std::move(arrays)), options_(options), sums_(arrays_.size()) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) add_jobs(i);
  }

  const std::vector<WriteJob>& jobs() const override { return jobs_; }

  Result<void> write(const WriteJob& job) override {
    const PlannedArray& array = arrays_[job.array];
    return write_here(job, array).in([&] { return "leaf " + array.path.text(); });
  }

  Result<void> finish(Manifest& manifest, const std::vector<std::string>& sha256) override {
    manifest.arrays.reserve(arrays_.size());
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      ManifestArray entry{arrays_[i].path,
                          arrays_[i].stored,
                          arrays_[i].cast_from,
                          {},
                          sha256.empty() ? std::string() : sha256[i]};
      std::vector<std::uint32_t> crcs;
      for (const auto& chunk : sums_[i].crcs) crcs.insert(crcs.end(), chunk.begin(), chunk.end());
      CAIRN_TRY_ASSIGN(entry.sums,
                       ChunkSums::make(kBlockBytes, std::move(sums_[i].lengths), std::move(crcs)));
      manifest.arrays.push_back(std::move(entry));
    }
    return {};
  }

  std::string manifest_name() const override { return zarr2_manifest_name(options_.prefix); }

  std::vector<std::string> entries() const override {
    if (!options_.prefix.empty()) return {prefix_directory(options_.prefix)};
    std::set<std::string> names{manifest_name()};
    for (const PlannedArray& array : arrays_) {
      names.insert(array.stored.key.substr(0, array.stored.key.find('/')));
    }
    return {names.begin(), names.end()};
  }

 private:
  void add_jobs(std::size_t i) {
    format::StoredArray& stored = arrays_[i].stored;
    stored.key = arrays_[i].path.directory();
    const std::uint64_t chunks = stored.chunk_count();
    sums_[i].lengths.resize(chunks);
    sums_[i].crcs.resize(chunks);
    // An array without elements still has its metadata to write.
    if (chunks == 0) jobs_.push_back({i, 0, 0, 0});
    const std::size_t item = item_size(stored.dtype);
    for (std::uint64_t n = 0; n < chunks; ++n) {
      jobs_.push_back({i, n, n + 1, stored.chunk_box(n).elements() * item});
    }
  }

  std::string object_key(const format::StoredArray& stored, std::string_view name) const {
    return join_path(join_path(prefix_directory(options_.prefix), stored.key), name);
  }

  Result<void> write_here(const WriteJob& job, const PlannedArray& array) {
    const format::StoredArray& stored = array.stored;
    if (job.begin == 0) {
      CAIRN_TRY_ASSIGN(const std::string text, format::zarr2::dump_metadata(stored));
      CAIRN_TRY(
          options_.store->put(object_key(stored, format::zarr2::kMetadataName), as_bytes(text)));
    }
    if (job.begin == job.end) return {};
    const LeafSource& source = *array.source;
    const Box box = stored.chunk_box(job.begin);
    // The scratch of gathering and casting, and as much again for the codec's output.
    const ByteBudget::Lease lease = options_.runtime->budget().acquire(
        source.scratch_bytes(Box::whole(stored.chunk_shape).elements()) +
        (stored.plain() ? 0 : stored.chunk_memory_bytes()));
    Buffer scratch;
    CAIRN_TRY_ASSIGN(const ByteSpan cells, source.chunk(box, stored.chunk_shape, scratch));
    CAIRN_TRY_ASSIGN(const auto codec, format::ChunkCodec::make(stored));
    CAIRN_TRY_ASSIGN(const Buffer encoded, codec.encode(cells));
    sums_[job.array].lengths[job.begin] = encoded.size();
    const std::string key = object_key(stored, stored.chunk_name(job.begin));
    CAIRN_TRY_ASSIGN(sums_[job.array].crcs[job.begin], write_object(key, encoded.bytes()));
    return {};
  }

  Result<std::vector<std::uint32_t>> write_object(const std::string& key, ByteSpan bytes) {
    if (bytes.size() <= kBlockBytes) {
      CAIRN_TRY(options_.store->put(key, bytes));
      return sum_and_write(bytes, [](std::size_t, ByteSpan) { return Result<void>(); });
    }
    CAIRN_TRY_ASSIGN(const auto out, options_.store->create(key, bytes.size()));
    CAIRN_TRY_ASSIGN(auto crcs, sum_and_write(bytes, [&](std::size_t at, ByteSpan block) {
                       return out->write_at(at, block);
                     }));
    CAIRN_TRY(out->finish());
    return crcs;
  }

  std::vector<PlannedArray> arrays_;
  ArrayWriterOptions options_;
  std::vector<Sums> sums_;
  std::vector<WriteJob> jobs_;
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

}  // namespace cairn::inline checkpoint
