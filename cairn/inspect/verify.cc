// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/verify.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/async/mutex.h"
#include "cairn/base/checked.h"
#include "cairn/base/crc32c.h"
#include "cairn/base/sha256.h"
#include "cairn/base/uri.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/expansion.h"
#include "cairn/format/zarr2/group.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/check_digest.h"
#include "cairn/load/read_boxes.h"
#include "cairn/manifest/eformer_structure.h"
#include "cairn/storage/open.h"

namespace cairn {

namespace {

struct VerifyJob {
  const OpenedPrefix* prefix = nullptr;
  std::size_t array = 0;
  std::uint64_t chunk = 0;             // the first of `chunks`
  const ManifestPart* part = nullptr;  // set: the part's header, no array
  std::uint64_t bytes = 0;
  std::optional<std::string> group = {};  // set: a directory above arrays
  std::uint64_t chunks = 1;
};

/// Most jobs of an array of which only metadata speaks: so many chunks need not be there.
constexpr std::uint64_t kMostJobs = 1 << 16;
/// Elements of a raw chunk that are looked at together; whole bytes, whatever the type.
constexpr std::uint64_t kElementsOfOnePiece = 1 << 20;

struct DigestJob {
  const OpenedPrefix* prefix = nullptr;
  DigestPlace place;
};

class Verifier {
 public:
  explicit Verifier(Runtime& runtime) : runtime_(runtime) {}

  void add(const OpenedPrefix& prefix) {
    for (const ManifestPart& part : prefix.manifest.parts) {
      if (part.header_crc) jobs_.push_back({&prefix, 0, 0, &part, part.header_bytes});
    }
    format::zarr2::Groups groups;
    for (std::size_t i = 0; i < prefix.manifest.arrays.size(); ++i) {
      const ManifestArray& array = prefix.manifest.arrays[i];
      ++report_.arrays;
      if (!array.stored.one_object && !array.sums.empty()) {
        for (std::string& group : groups.above(array.stored.key))
          jobs_.push_back({.prefix = &prefix, .group = std::move(group)});
      }
      const std::uint64_t chunks = array.stored.chunk_count();
      report_.chunks += chunks;
      const std::uint64_t step = array.sums.empty() ? ceil_div(chunks, kMostJobs) : 1;
      for (std::uint64_t n = 0; n < chunks; n += step) {
        const std::uint64_t count = std::min(step, chunks - n);
        const std::uint64_t bytes =
            array.sums.empty() ? count * array.stored.chunk_bytes() : array.sums.lengths()[n];
        jobs_.push_back({&prefix, i, n, nullptr, bytes, {}, count});
      }
      const auto digests = digests_of(prefix, {i});
      if (array.sums.empty() && digests.empty() && chunks > 0)
        report_.unchecked.push_back(array.path.text());
      for (const DigestPlace& place : digests) digests_.push_back({&prefix, place});
    }
  }

  Result<VerifyReport> run(const ProgressSink& sink) {
    std::uint64_t total = 0;
    for (const VerifyJob& job : jobs_) total += job.bytes;
    Progress progress(sink, total);
    const auto done =
        for_each_index(runtime_.executor(), jobs_.size(), [&](std::size_t i) -> Result<void> {
          CAIRN_TRY(check(jobs_[i]));
          progress.add(jobs_[i].bytes);
          return {};
        });
    CAIRN_TRY(done);
    CAIRN_TRY(check_digests());
    const auto place = [](const Damage& d) {
      return std::tie(d.prefix, d.key, d.object, d.message);
    };
    MutexLock lock(mutex_);
    std::ranges::sort(report_.damages, {}, place);
    return std::move(report_);
  }

 private:
  Result<void> check(VerifyJob job) {
    for (const std::uint64_t end = job.chunk + job.chunks; job.chunk < end; ++job.chunk)
      CAIRN_TRY(check_one(job));
    MutexLock lock(mutex_);
    report_.bytes += job.bytes;
    return {};
  }

  // An error is one of this process, not of the checkpoint.
  Result<void> check_one(const VerifyJob& job) {
    const Result<void> result = job.part != nullptr          ? check_part(job)
                                : job.group                  ? check_group(job)
                                : array_of(job).sums.empty() ? decode_chunk(job)
                                                             : check_chunk(job);
    if (result) return {};
    Damage found = damage(job, result.error());
    if (result.error().code() == Code::kResourceExhausted)
      return Error(result.error()).in(found.object);
    MutexLock lock(mutex_);
    report_.damages.push_back(std::move(found));
    return {};
  }

  Result<void> check_digests() {
    std::set<std::pair<std::string, std::string>> damaged;
    {
      MutexLock lock(mutex_);
      for (const Damage& found : report_.damages) damaged.emplace(found.prefix, found.key);
    }
    return for_each_index(runtime_.executor(), digests_.size(), [&](std::size_t i) -> Result<void> {
      const auto& [prefix, place] = digests_[i];
      const ManifestArray& array = prefix->manifest.arrays[place.array];
      if (damaged.contains({prefix->name, array.path.text()})) return {};
      const auto checked = check_digest(*prefix, place, runtime_);
      if (checked) return {};
      Damage found{prefix->name, array.path.text(), array.stored.key, "", "", ""};
      // The n-th piece of an array in chunks is the n-th chunk.
      if (!array.pieces.empty() && !array.stored.one_object) {
        found.chunk = array.stored.chunk_name(place.piece);
        found.object = array.stored.chunk_key(place.piece);
      }
      found.object = prefix->store->describe(found.object);
      found.reason = checked.error().reason();
      found.message = checked.error().message();
      MutexLock lock(mutex_);
      report_.damages.push_back(std::move(found));
      return {};
    });
  }

  static const ManifestArray& array_of(const VerifyJob& job) {
    return job.prefix->manifest.arrays[job.array];
  }

  static Damage damage(const VerifyJob& job, const Error& error) {
    Damage found{job.prefix->name, "", "", "", std::string(error.reason()), error.message()};
    if (job.part != nullptr) {
      found.object = job.prefix->store->describe(job.part->name);
      return found;
    }
    if (job.group) {
      found.object = job.prefix->store->describe(join_path(*job.group, format::zarr2::kGroupName));
      return found;
    }
    const ManifestArray& array = array_of(job);
    found.key = array.path.text();
    found.object = job.prefix->store->describe(array.stored.chunk_key(job.chunk));
    if (!array.stored.one_object) found.chunk = array.stored.chunk_name(job.chunk);
    return found;
  }

  static Result<void> check_part(const VerifyJob& job) {
    const ManifestPart& part = *job.part;
    CAIRN_TRY_ASSIGN(const auto object, job.prefix->store->open(part.name));
    if (object->size() != part.bytes) {
      return Error(
          Code::kCorrupt, "verify/part-length",
          fmt::format("the file has {} bytes; {} were written", object->size(), part.bytes));
    }
    CAIRN_TRY_ASSIGN(Buffer header, Buffer::allocate(part.header_bytes));
    CAIRN_TRY(object->read_at(0, header.mutable_bytes()));
    if (crc32c(header.bytes()) == part.header_crc) return {};
    return Error(Code::kCorrupt, "verify/part-header",
                 "the header of the file was damaged after it was saved");
  }

  // Piece by piece, each with its own lease, so that large chunks need little memory.
  Result<void> check_chunk(const VerifyJob& job) {
    const ManifestArray& array = array_of(job);
    if (job.chunk == 0 && !array.stored.one_object) CAIRN_TRY(check_metadata(job));
    auto object = job.prefix->store->open(array.stored.chunk_key(job.chunk));
    if (!object && object.error().code() == Code::kNotFound) {
      return Error(Code::kCorrupt, "load/chunk-missing", "the file is missing, but it was written");
    }
    if (!object) return std::move(object).error();
    const std::uint64_t length = array.sums.lengths()[job.chunk];
    if (!array.stored.one_object && (*object)->size() != length) {
      return Error(
          Code::kCorrupt, "load/chunk-length",
          fmt::format("the file has {} bytes; {} were written", (*object)->size(), length));
    }
    for (std::uint64_t at = 0; at < length; at += kReadPieceBytes) {
      const std::uint64_t size = std::min(kReadPieceBytes, length - at);
      const ByteBudget::Lease lease = runtime_.budget().acquire(size);
      CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::allocate(size));
      CAIRN_TRY((*object)->read_at(array.stored.offset + at, bytes.mutable_bytes()));
      CAIRN_TRY(check_blocks(array, job.chunk, at, bytes.bytes()));
    }
    return {};
  }

  // We do not need `.zarray` ourselves, other readers do.
  static Result<void> check_metadata(const VerifyJob& job) {
    const ManifestArray& array = array_of(job);
    const std::string key = join_path(array.stored.key, format::zarr2::kMetadataName);
    CAIRN_TRY_ASSIGN(const std::string expected, format::zarr2::dump_metadata(array.stored));
    const auto found = storage::read_all(*job.prefix->store, key, format::zarr2::kMaxMetadataBytes);
    if (found && as_text(found->bytes()) == expected) return {};
    return Error(Code::kCorrupt, "verify/array-metadata",
                 fmt::format(".zarray is {}; other readers need it",
                             found ? "not the one that was written" : "missing"));
  }

  // Checkpoints of before there were groups have none, and a user of zarr may have written it anew.
  static Result<void> check_group(const VerifyJob& job) {
    const auto found =
        storage::read_all(*job.prefix->store, join_path(*job.group, format::zarr2::kGroupName),
                          format::zarr2::kMaxGroupBytes);
    if (!found && found.error().code() == Code::kNotFound) return {};
    if (found && format::zarr2::check_group(as_text(found->bytes()))) return {};
    return Error(Code::kCorrupt, "verify/group-metadata",
                 ".zgroup is not the one that was written; other readers need it");
  }

  // What is asked for memory depends on what lies there: a chunk that does not takes none.
  Result<void> decode_chunk(const VerifyJob& job) {
    const format::StoredArray& stored = array_of(job).stored;
    const auto object = job.prefix->store->open(stored.chunk_key(job.chunk));
    if (!object && object.error().code() == Code::kNotFound && !stored.one_object) return {};
    if (!object) return object.error();
    if (!stored.one_object) CAIRN_TRY(format::check_expansion(stored, (*object)->size()));
    if (stored.codec.is_raw()) return decode_pieces(**object, stored);
    const std::uint64_t size = (*object)->size();
    CAIRN_TRY(check_possible_memory(size + stored.chunk_memory_bytes(), "a chunk"));
    const ByteBudget::Lease lease = runtime_.budget().acquire(size + stored.chunk_memory_bytes());
    CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::allocate(size));
    CAIRN_TRY((*object)->read_at(0, bytes.mutable_bytes()));
    return decode(stored, bytes.bytes());
  }

  // Raw elements stand for themselves: a chunk of them is as many small ones.
  Result<void> decode_pieces(storage::ObjectReader& object, const format::StoredArray& stored) {
    const std::uint64_t total = Box::whole(stored.chunk_shape).elements();
    format::StoredArray piece = stored;
    std::uint64_t offset = stored.one_object ? stored.offset : 0;
    for (std::uint64_t at = 0; at < total; at += kElementsOfOnePiece) {
      piece.shape = {static_cast<Index>(std::min(kElementsOfOnePiece, total - at))};
      piece.chunk_shape = piece.shape;
      const std::uint64_t size = piece.chunk_bytes();
      const ByteBudget::Lease lease = runtime_.budget().acquire(size + piece.chunk_memory_bytes());
      CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::allocate(size));
      CAIRN_TRY(object.read_at(offset, bytes.mutable_bytes()));
      if (!piece.plain()) CAIRN_TRY(decode(piece, bytes.bytes()));
      offset += size;
    }
    return {};
  }

  static Result<void> decode(const format::StoredArray& stored, ByteSpan bytes) {
    CAIRN_TRY_ASSIGN(const auto codec, format::ChunkCodec::make(stored));
    CAIRN_TRY_ASSIGN(Buffer cells, Buffer::allocate(stored.chunk_memory_bytes()));
    return codec.decode(bytes, cells.mutable_bytes());
  }

  Runtime& runtime_;
  std::vector<VerifyJob> jobs_;
  std::vector<DigestJob> digests_;
  Mutex mutex_;
  VerifyReport report_;
};

/// The files by which the reference system loads our trees: we do not need them ourselves.
Result<void> check_structure_files(const Checkpoint& checkpoint,
                                   const std::vector<const OpenedPrefix*>& prefixes,
                                   VerifyReport& report, Runtime& runtime) {
  for (const OpenedPrefix* prefix : prefixes) {
    if (prefix->manifest.structure_file.empty()) continue;
    CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(checkpoint.path));
    CAIRN_TRY_ASSIGN(const auto store,
                     storage::open_store(uri, {.file_system = &runtime.file_system()}));
    const auto text = storage::read_all(*store, prefix->structure_file, kMaxEformerStructureBytes);
    if (text && sha256_hex(text->bytes()) == prefix->manifest.structure_file) continue;
    report.damages.push_back({prefix->name, "", store->describe(prefix->structure_file), "",
                              "verify/structure-file",
                              fmt::format("the file is {}; the reference system needs it",
                                          text ? "not the one that was written" : "missing")});
  }
  return {};
}

Result<VerifyReport> verify_once(const Checkpoint& checkpoint, const VerifyOptions& options,
                                 Runtime& runtime) {
  Verifier verifier(runtime);
  CAIRN_TRY_ASSIGN(const auto prefixes, select_prefixes(checkpoint, options.prefix));
  for (const OpenedPrefix* prefix : prefixes) verifier.add(*prefix);
  CAIRN_TRY_ASSIGN(auto report, verifier.run(options.progress));
  CAIRN_TRY(check_structure_files(checkpoint, prefixes, report, runtime));
  for (const Damage& damage : report.damages) {
    if (damage.reason == "storage/replaced")
      return Error(Code::kUnavailable, kReplaced, damage.object + ": " + damage.message);
  }
  // What was replaced meanwhile is not damaged.
  if (!report.damages.empty()) CAIRN_TRY(check_unchanged(checkpoint, runtime));
  return report;
}

}  // namespace

Result<VerifyReport> verify(const Checkpoint& checkpoint, const VerifyOptions& options,
                            Runtime& runtime) {
  return read_settled(checkpoint, runtime, [&](const Checkpoint& opened) {
    return verify_once(opened, options, runtime);
  });
}

}  // namespace cairn
