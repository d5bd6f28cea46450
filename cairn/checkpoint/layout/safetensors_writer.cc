// SPDX-License-Identifier: Apache-2.0
// One file <base>.safetensors, or parts of at most shard_size with an index. A tensor's name is its
// key path.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cairn/checkpoint/layout/array_writer.h"
#include "cairn/checkpoint/leaf_source.h"
#include "cairn/checkpoint/names.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/safetensors/index.h"
#include "cairn/format/safetensors/parts.h"
#include "cairn/format/safetensors/writer.h"

namespace cairn::inline checkpoint {

namespace {

namespace st = format::safetensors;

// Stored bytes of one job: whole blocks, and whole elements of every type, packed 4 and 6 bit ones
// included.
constexpr std::uint64_t kPieceBytes = 6 * kBlockBytes;

struct Place {
  std::size_t part = 0;
  std::size_t tensor = 0;  // in the part's writer
};

class SafetensorsWriter final : public ArrayWriter {
 public:
  SafetensorsWriter(std::vector<PlannedArray> arrays, const ArrayWriterOptions& options)
      : arrays_(std::move(arrays)),
        options_(options),
        places_(arrays_.size()),
        crcs_(arrays_.size()) {}

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
      add_jobs(i, bytes);
    }
    auto groups =
        st::group_keys_by_shard_size(sizes, bare() ? ~std::uint64_t{0} : options_.shard_size);
    if (groups.empty()) groups.emplace_back();
    for (const auto& group : groups) CAIRN_TRY(open_part(group, names, groups.size()));
    return {};
  }

  const std::vector<WriteJob>& jobs() const override { return jobs_; }

  Result<void> write(const WriteJob& job) override {
    return write_here(job).in([&] { return "leaf " + arrays_[job.array].path.text(); });
  }

  Result<void> finish(Manifest& manifest, const std::vector<std::string>& sha256) override {
    if (bare()) {
      CAIRN_TRY_ASSIGN(const auto metadata, embedded(parts_.front().tensors(), sha256));
      CAIRN_TRY(parts_.front().set_metadata(metadata));
    }
    std::uint64_t total = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      CAIRN_TRY(parts_[p].finish());
      const std::string& text = parts_[p].header_text();
      total += parts_[p].header().data_bytes;
      manifest.parts.push_back({part_names_[p], text.size() + parts_[p].header().data_bytes,
                                text.size(), crc32c(as_bytes(text))});
    }
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const st::Header& header = parts_[places_[i].part].header();
      CAIRN_TRY_ASSIGN(auto entry, manifest_array(i, header, part_names_[places_[i].part], sha256));
      manifest.arrays.push_back(std::move(entry));
    }
    return parts_.size() > 1 ? write_index(total) : Result<void>();
  }

  std::string manifest_name() const override { return safetensors_manifest_name(options_.prefix); }

  std::vector<std::string> entries() const override {
    auto names = part_names_;
    names.push_back(manifest_name());
    if (parts_.size() > 1) names.push_back(st::index_filename(safetensors_base(options_.prefix)));
    return names;
  }

 private:
  void add_jobs(std::size_t i, std::uint64_t bytes) {
    crcs_[i].resize(block_count(bytes, kBlockBytes));
    const auto bits = static_cast<std::uint64_t>(bit_width(arrays_[i].stored.dtype));
    const std::uint64_t width =
        arrays_[i].stored.packed ? bits : 8 * item_size(arrays_[i].stored.dtype);
    for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
      const std::uint64_t size = std::min(kPieceBytes, bytes - at);
      jobs_.push_back({i, at * 8 / width, (at + size) * 8 / width, size});
    }
  }

  Result<void> open_part(const std::vector<std::size_t>& group,
                         const std::vector<std::string>& names, std::size_t part_count) {
    std::vector<st::Tensor> tensors;
    std::unordered_map<std::string_view, std::size_t> array_of;
    for (const std::size_t i : group) {
      tensors.push_back({names[i], arrays_[i].stored.dtype, arrays_[i].stored.shape, 0, 0});
      array_of.emplace(names[i], i);
    }
    // Gives the tensors their order and offsets, which do not depend on the metadata.
    CAIRN_TRY(st::make_header(tensors, {}));
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      places_[array_of.at(tensors[t].name)] = {parts_.size(), t};
    }
    st::Metadata metadata{{"format", "pt"}};
    if (bare()) {
      CAIRN_TRY_ASSIGN(metadata, embedded(tensors, {}));
    }
    const std::string base = safetensors_base(options_.prefix);
    const std::string name = bare() ? options_.bare_name
                             : part_count == 1
                                 ? base + ".safetensors"
                                 : st::shard_filename(base, parts_.size() + 1, part_count);
    CAIRN_TRY_ASSIGN(auto writer,
                     st::Writer::create(*options_.store, name, std::move(tensors), metadata));
    parts_.push_back(std::move(writer));
    part_names_.push_back(name);
    return {};
  }

  Result<void> write_here(const WriteJob& job) {
    const PlannedArray& array = arrays_[job.array];
    const LeafSource& source = *array.source;
    const ByteBudget::Lease lease =
        options_.runtime->budget().acquire(source.scratch_bytes(job.end - job.begin) + job.bytes);
    Buffer scratch;
    CAIRN_TRY_ASSIGN(const ByteSpan cells, source.range(job.begin, job.end, scratch));
    format::StoredArray piece;
    piece.dtype = array.stored.dtype;
    piece.packed = array.stored.packed;
    piece.shape = piece.chunk_shape = {static_cast<Index>(job.end - job.begin)};
    CAIRN_TRY_ASSIGN(const auto codec, format::ChunkCodec::make(piece));
    CAIRN_TRY_ASSIGN(const Buffer stored, codec.encode(cells));
    const Place place = places_[job.array];
    const st::Tensor& tensor = parts_[place.part].tensors()[place.tensor];
    const std::uint64_t offset = piece_offset(job);
    CAIRN_TRY_ASSIGN(const auto crcs,
                     sum_and_write(stored.bytes(), [&](std::size_t at, ByteSpan block) {
                       return parts_[place.part].write(tensor, offset + at, block);
                     }));
    std::ranges::copy(crcs,
                      crcs_[job.array].begin() + static_cast<std::ptrdiff_t>(offset / kBlockBytes));
    return {};
  }

  std::uint64_t piece_offset(const WriteJob& job) const {
    const format::StoredArray& stored = arrays_[job.array].stored;
    const auto bits = static_cast<std::uint64_t>(bit_width(stored.dtype));
    return stored.packed ? job.begin * bits / 8 : job.begin * item_size(stored.dtype);
  }

  bool bare() const { return !options_.bare_name.empty(); }

  Result<ManifestArray> manifest_array(std::size_t i, const st::Header& header,
                                       const std::string& key,
                                       const std::vector<std::string>& sha256) const {
    const st::Tensor& tensor = header.tensors[places_[i].tensor];
    ManifestArray entry{arrays_[i].path,
                        header.stored_array(tensor, key),
                        arrays_[i].cast_from,
                        {},
                        sha256.empty() ? std::string() : sha256[i]};
    std::vector<std::uint64_t> lengths;
    if (entry.stored.chunk_count() > 0) lengths.push_back(tensor.end - tensor.begin);
    CAIRN_TRY_ASSIGN(entry.sums, ChunkSums::make(kBlockBytes, std::move(lengths), crcs_[i]));
    return entry;
  }

  // The manifest inside a bare file. It has one length from the beginning to the end: sums and
  // digests that are not known yet are zeros, offsets count from the data, and the part has no name
  // and no size.
  Result<st::Metadata> embedded(const std::vector<st::Tensor>& tensors,
                                std::vector<std::string> sha256) const {
    if (options_.with_sha256 && sha256.empty()) sha256.assign(arrays_.size(), std::string(64, '0'));
    Manifest manifest = *options_.head;
    manifest.parts = {ManifestPart{}};
    st::Header header;
    header.tensors = tensors;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      CAIRN_TRY_ASSIGN(auto entry, manifest_array(i, header, "", sha256));
      manifest.arrays.push_back(std::move(entry));
    }
    CAIRN_TRY_ASSIGN(std::string text, dump_manifest(manifest));
    return st::Metadata{{"format", "pt"}, {std::string(kEmbeddedManifest), std::move(text)}};
  }

  Result<void> write_index(std::uint64_t total) {
    st::Index index;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      index.weight_map.emplace_back(arrays_[i].path.text(), part_names_[places_[i].part]);
    }
    const std::string name = st::index_filename(safetensors_base(options_.prefix));
    CAIRN_TRY(options_.store->put(name, as_bytes(st::dump_index(index, total))));
    return {};
  }

  std::vector<PlannedArray> arrays_;
  ArrayWriterOptions options_;
  std::vector<Place> places_;
  std::vector<std::vector<std::uint32_t>> crcs_;
  std::vector<WriteJob> jobs_;
  std::vector<st::Writer> parts_;
  std::vector<std::string> part_names_;
};

}  // namespace

Result<std::unique_ptr<ArrayWriter>> make_safetensors_writer(std::vector<PlannedArray> arrays,
                                                             const ArrayWriterOptions& options) {
  auto writer = std::make_unique<SafetensorsWriter>(std::move(arrays), options);
  CAIRN_TRY(writer->begin());
  return std::unique_ptr<ArrayWriter>(std::move(writer));
}

}  // namespace cairn::inline checkpoint
