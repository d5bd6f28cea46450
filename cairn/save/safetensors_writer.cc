// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/safetensors_writer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cairn/async/mutex.h"
#include "cairn/base/sha256.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/safetensors/index.h"
#include "cairn/format/safetensors/parts.h"
#include "cairn/format/safetensors/writer.h"
#include "cairn/manifest/manifest_json.h"
#include "cairn/manifest/names.h"
#include "cairn/save/divide_work.h"
#include "cairn/save/leaf_source.h"
#include "cairn/save/left_pieces.h"

namespace cairn {

namespace {

namespace st = format::safetensors;

/// One file. Alone, it is open from the beginning; together with other ranks, from the first write.
struct Part {
  std::string name;
  st::Header header;
  std::string text;  // of the header
  std::optional<st::Writer> writer = {};
};

struct TensorSlot {
  std::size_t part = 0;
  std::size_t tensor = 0;  // in the part's header
};

/// What a job does.
struct FileJob {
  ElementRange range = {};           // of the array, written in place
  const LeftPiece* piece = nullptr;  // or left for another rank
  bool assembles = false;            // the range comes from what others left
};

class SafetensorsWriter final : public ArrayWriter {
 public:
  SafetensorsWriter(std::vector<PlannedArray> arrays, const ArrayWriterOptions& options)
      : arrays_(std::move(arrays)), options_(options), slots_(arrays_.size()) {}

  Result<void> begin() {
    std::vector<std::string> names(arrays_.size());
    std::vector<st::NamedSize> sizes;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      names[i] = arrays_[i].path.text();
      CAIRN_TRY_ASSIGN(const std::uint64_t bytes,
                       st::tensor_bytes(arrays_[i].stored.dtype, arrays_[i].stored.shape).in([&] {
                         return "leaf " + names[i];
                       }));
      sizes.push_back({names[i], bytes});
      add_jobs(i);
    }
    auto groups =
        st::group_keys_by_shard_size(sizes, bare() ? ~std::uint64_t{0} : options_.shard_size);
    if (groups.empty()) groups.emplace_back();
    for (const auto& group : groups) CAIRN_TRY(add_part(group, names, groups.size()));
    return {};
  }

  const std::vector<WriteJob>& jobs() const override { return jobs_; }
  const std::vector<WriteJob>& late_jobs() const override { return late_jobs_; }

  Result<ByteSpan> cells(const WriteJob& job, Buffer& scratch) const override {
    return make_cells(job, scratch).in([&] { return "leaf " + arrays_[job.array].path.text(); });
  }

  void forget_changing_arrays() override { forget_changing(arrays_); }

  Result<void> open(const WriterStores& stores) override {
    stores_ = stores;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (arrays_[i].work.assembler == options_.rank)
        left_.emplace(i, pieces_source(*stores_.pieces, pieces_of(i), arrays_[i]));
    }
    if (!alone()) return {};
    for (Part& part : parts_) CAIRN_TRY(open_alone(part));
    return {};
  }

  Result<void> write(const WriteJob& job, ByteSpan cells) override {
    return write_here(job, cells).in([&] { return "leaf " + arrays_[job.array].path.text(); });
  }

  Result<WrittenSums> take_sums() override {
    MutexLock lock(mutex_);
    // The header of a bare file has the sums in it: finish() writes it.
    if (!bare()) CAIRN_TRY(close_parts());
    return std::exchange(sums_, {});
  }

  Result<void> finish(Manifest& manifest, WrittenSums sums) override {
    auto arrays = manifest_arrays();
    CAIRN_TRY(join_sums(std::move(sums), arrays));
    if (bare()) {
      st::Writer& file = *parts_.front().writer;
      CAIRN_TRY_ASSIGN(const st::Metadata metadata, embedded(arrays));
      CAIRN_TRY(file.set_metadata(metadata));
      parts_.front().text = file.header_text();
      CAIRN_TRY(file.finish());
    }
    std::uint64_t total = 0;
    for (const Part& part : parts_) {
      total += part.header.data_bytes;
      manifest.parts.push_back({part.name, part.text.size() + part.header.data_bytes,
                                part.text.size(), crc32c(as_bytes(part.text))});
    }
    manifest.arrays = std::move(arrays);
    return parts_.size() > 1 ? write_index(total) : Result<void>();
  }

  std::string manifest_name() const override { return safetensors_manifest_name(options_.prefix); }

  std::vector<std::string> entries() const override {
    std::vector<std::string> names;
    names.reserve(parts_.size() + 2);
    for (const Part& part : parts_) names.push_back(part.name);
    names.push_back(manifest_name());
    if (parts_.size() > 1) names.push_back(st::index_filename(safetensors_base(options_.prefix)));
    return names;
  }

 private:
  bool bare() const { return !options_.bare_name.empty(); }
  bool alone() const { return options_.ranks == 1; }

  void add_jobs(std::size_t i) {
    const PlannedArray& array = arrays_[i];
    for (const ElementRange& range : array.work.ranges) add_job(i, {.range = range}, jobs_);
    for (const LeftPiece& piece : array.work.pieces)
      add_job(i, {.range = piece.range, .piece = &piece}, jobs_);
    if (array.work.assembler != options_.rank) return;
    const std::uint64_t elements = Box::whole(array.stored.shape).elements();
    // As many elements as are stored in kWriteBytes: whole blocks.
    const std::uint64_t bits = array.stored.packed
                                   ? static_cast<std::uint64_t>(bit_width(array.stored.dtype))
                                   : item_size(array.stored.dtype) * 8;
    const std::uint64_t step = kWriteBytes * 8 / bits;
    for (std::uint64_t at = 0; at < elements; at += step) {
      add_job(i, {.range = {at, std::min(at + step, elements)}, .assembles = true}, late_jobs_);
    }
  }

  void add_job(std::size_t i, const FileJob& task, std::vector<WriteJob>& jobs) {
    const std::uint64_t elements = task.range.end - task.range.begin;
    const std::uint64_t bytes = elements * item_size(arrays_[i].stored.dtype);
    const std::uint64_t scratch =
        task.assembles ? bytes : arrays_[i].source->scratch_bytes(elements);
    jobs.push_back({.array = i,
                    .what = tasks_.size(),
                    .bytes = bytes,
                    .cell_bytes = bytes,
                    .make_bytes = bytes + scratch,
                    .encode_bytes = bytes,
                    .immutable = arrays_[i].source->immutable()});
    tasks_.push_back(task);
  }

  Result<void> add_part(const std::vector<std::size_t>& group,
                        const std::vector<std::string>& names, std::size_t part_count) {
    Part part;
    std::unordered_map<std::string_view, std::size_t> array_of;
    for (const std::size_t i : group) {
      part.header.tensors.push_back(
          {names[i], arrays_[i].stored.dtype, arrays_[i].stored.shape, 0, 0});
      array_of.emplace(names[i], i);
    }
    // Gives the tensors their order and offsets, which do not depend on the metadata.
    part.header.metadata = {{"format", "pt"}};
    CAIRN_TRY_ASSIGN(part.text, st::make_header(part.header.tensors, part.header.metadata));
    for (std::size_t t = 0; t < part.header.tensors.size(); ++t) {
      slots_[array_of.at(part.header.tensors[t].name)] = {parts_.size(), t};
    }
    part.header.data_start = part.text.size();
    part.header.data_bytes = part.header.tensors.empty() ? 0 : part.header.tensors.back().end;
    const std::string base = safetensors_base(options_.prefix);
    part.name = bare()            ? options_.bare_name
                : part_count == 1 ? base + ".safetensors"
                                  : st::shard_filename(base, parts_.size() + 1, part_count);
    parts_.push_back(std::move(part));
    return {};
  }

  Result<void> open_alone(Part& part) {
    if (bare()) {
      auto arrays = manifest_arrays();
      CAIRN_TRY(set_zero_sums(arrays));
      CAIRN_TRY_ASSIGN(part.header.metadata, embedded(arrays));
    }
    CAIRN_TRY_ASSIGN(part.writer, st::Writer::create(*stores_.data, part.name, part.header.tensors,
                                                     part.header.metadata));
    part.header.data_start = part.writer->data_start();
    part.text = part.writer->header_text();
    return {};
  }

  Result<st::Writer*> open_part(std::size_t p) {
    MutexLock lock(mutex_);
    return joined(p);
  }

  Result<st::Writer*> joined(std::size_t p) CAIRN_REQUIRES(mutex_) {
    Part& part = parts_[p];
    if (!part.writer) {
      CAIRN_TRY_ASSIGN(part.writer, st::Writer::join(*stores_.data, part.name, part.header.tensors,
                                                     part.header.metadata, options_.rank == 0));
    }
    return &*part.writer;
  }

  // Rank 0 writes every header, also of parts of which it holds nothing.
  Result<void> close_parts() CAIRN_REQUIRES(mutex_) {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (!alone() && options_.rank == 0 && !headers_written_) CAIRN_TRY(joined(p));
      if (parts_[p].writer) CAIRN_TRY(parts_[p].writer->finish());
      parts_[p].writer.reset();
    }
    headers_written_ = true;
    return {};
  }

  Result<ByteSpan> make_cells(const WriteJob& job, Buffer& scratch) const {
    const PlannedArray& array = arrays_[job.array];
    const FileJob& task = tasks_[job.what];
    if (task.piece != nullptr) return piece_cells(array, *task.piece, scratch);
    if (!task.assembles) return array.source->range(task.range.begin, task.range.end, scratch);
    return left_.at(job.array)->range(task.range.begin, task.range.end, scratch);
  }

  Result<void> write_here(const WriteJob& job, ByteSpan cells) {
    const FileJob& task = tasks_[job.what];
    if (task.piece != nullptr)
      return put_piece(*stores_.pieces, pieces_of(job.array), *task.piece, cells);
    return write_range(job.array, task.range, cells);
  }

  std::string pieces_of(std::size_t i) const {
    return fmt::format("{}/{}", options_.pieces_name, i);
  }

  Result<void> write_range(std::size_t i, const ElementRange& range, ByteSpan cells) {
    const format::StoredArray& stored = arrays_[i].stored;
    format::StoredArray piece;
    piece.dtype = stored.dtype;
    piece.packed = stored.packed;
    piece.shape = piece.chunk_shape = {static_cast<Index>(range.end - range.begin)};
    CAIRN_TRY_ASSIGN(const auto codec, format::ChunkCodec::make(piece));
    CAIRN_TRY_ASSIGN(const Buffer bytes, codec.encode(cells));
    CAIRN_TRY_ASSIGN(st::Writer* const writer, open_part(slots_[i].part));
    const st::Tensor& tensor = writer->tensors()[slots_[i].tensor];
    const auto bits = static_cast<std::uint64_t>(bit_width(stored.dtype));
    const std::uint64_t offset =
        stored.packed ? range.begin * bits / 8 : range.begin * item_size(stored.dtype);
    const auto number = static_cast<std::uint32_t>(i);
    WrittenSums sums;
    CAIRN_TRY(sum_ranges(
        {.array = number}, offset, bytes.bytes(), sums.ranges,
        [&](std::uint64_t at, ByteSpan block) { return writer->write(tensor, at, block); }));
    if (options_.with_sha256 && !arrays_[i].work.hasher) {
      Sha256 sha;
      sha.update(cells);
      sums.hashes.push_back({number, range.begin, range.end, sha.digest()});
    }
    MutexLock lock(mutex_);
    sums_.add(sums);
    return {};
  }

  /// Everything but the sums.
  std::vector<ManifestArray> manifest_arrays() const {
    std::vector<ManifestArray> arrays;
    arrays.reserve(arrays_.size());
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const Part& part = parts_[slots_[i].part];
      arrays.push_back({arrays_[i].path,
                        part.header.stored_array(part.header.tensors[slots_[i].tensor],
                                                 bare() ? std::string() : part.name),
                        arrays_[i].cast_from,
                        {},
                        {},
                        spec_of(arrays_[i].sharding)});
    }
    return arrays;
  }

  Result<void> set_zero_sums(std::vector<ManifestArray>& arrays) const {
    for (ManifestArray& array : arrays) {
      if (options_.with_sha256) array.sha256 = std::string(64, '0');
      std::vector<std::uint64_t> lengths;
      if (array.stored.chunk_count() > 0) lengths.push_back(array.stored.chunk_bytes());
      std::vector<std::uint32_t> crcs(lengths.empty() ? 0
                                                      : block_count(lengths.front(), kBlockBytes));
      CAIRN_TRY_ASSIGN(array.sums,
                       ChunkSums::make(kBlockBytes, std::move(lengths), std::move(crcs)));
    }
    return {};
  }

  // The user's texts, where every reader of the format looks for them; and who reads them as whose
  // tensors, which some readers ask for.
  static st::Metadata seen_by_others(const Json& user) {
    st::Metadata metadata;
    if (const Json::Object* members = user.object()) {
      for (const auto& [name, value] : *members) {
        if (value.text() && name != kEmbeddedManifest) metadata.emplace_back(name, *value.text());
      }
    }
    if (user.find("format") == nullptr || user.find("format")->text() == nullptr)
      metadata.emplace_back("format", "pt");
    return metadata;
  }

  // The manifest inside a bare file. It has one length from the beginning to the end: sums and
  // digests that are not known yet are zeros, offsets count from the data, and the part has no name
  // and no size.
  Result<st::Metadata> embedded(std::vector<ManifestArray> arrays) const {
    Manifest manifest = *options_.head;
    manifest.parts = {ManifestPart{}};
    for (ManifestArray& array : arrays) array.stored.offset -= parts_.front().header.data_start;
    manifest.arrays = std::move(arrays);
    CAIRN_TRY_ASSIGN(std::string text, dump_manifest(manifest));
    st::Metadata metadata = seen_by_others(manifest.metadata);
    metadata.emplace_back(kEmbeddedManifest, std::move(text));
    return metadata;
  }

  Result<void> write_index(std::uint64_t total) {
    st::Index index;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      index.weight_map.emplace_back(arrays_[i].path.text(), parts_[slots_[i].part].name);
    }
    const std::string name = st::index_filename(safetensors_base(options_.prefix));
    CAIRN_TRY(stores_.data->put(name, as_bytes(st::dump_index(index, total))));
    return {};
  }

  std::vector<PlannedArray> arrays_;
  ArrayWriterOptions options_;
  WriterStores stores_;
  std::vector<TensorSlot> slots_;
  std::vector<Part> parts_;
  std::vector<FileJob> tasks_;
  /// What others left of the arrays that this rank puts together.
  std::unordered_map<std::size_t, std::shared_ptr<const LeafSource>> left_;
  std::vector<WriteJob> jobs_;
  std::vector<WriteJob> late_jobs_;
  bool headers_written_ = false;
  Mutex mutex_;  // guards the writers of parts while jobs run
  WrittenSums sums_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<ArrayWriter>> make_safetensors_writer(std::vector<PlannedArray> arrays,
                                                             const ArrayWriterOptions& options) {
  auto writer = std::make_unique<SafetensorsWriter>(std::move(arrays), options);
  CAIRN_TRY(writer->begin());
  return std::unique_ptr<ArrayWriter>(std::move(writer));
}

}  // namespace cairn
