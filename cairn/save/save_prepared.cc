// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/save_prepared.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/commit/open.h"
#include "cairn/manifest/checkpoint_metadata.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/eformer_structure_writer.h"
#include "cairn/manifest/manifest_json.h"
#include "cairn/manifest/names.h"
#include "cairn/save/divide_work.h"
#include "cairn/save/replaced_tree.h"
#include "cairn/save/safetensors_writer.h"
#include "cairn/save/zarr2_writer.h"
#include "cairn/storage/open.h"

namespace cairn {

namespace {

// Hashes one array in C order, in pieces, so that no array is gathered whole.
Result<Sha256Digest> hash_array(const PlannedArray& array, Runtime& runtime) {
  const LeafSource& source = *array.source;
  const std::uint64_t elements = Box::whole(array.stored.shape).elements();
  const std::uint64_t step = 4 * kMiB / item_size(array.stored.dtype);
  const ByteBudget::Lease lease =
      runtime.budget().acquire(source.scratch_bytes(std::min(step, elements)));
  Sha256 sha;
  Buffer scratch;
  for (std::uint64_t at = 0; at < elements; at += step) {
    CAIRN_TRY_ASSIGN(const ByteSpan bytes,
                     source.range(at, std::min(at + step, elements), scratch));
    sha.update(bytes);
  }
  return sha.digest();
}

void count(const Manifest& manifest, SaveReport& report) {
  report.arrays += manifest.arrays.size();
  for (const ManifestArray& array : manifest.arrays) {
    report.bytes += Box::whole(array.stored.shape).elements() * item_size(array.stored.dtype);
    for (const std::uint64_t length : array.sums.lengths()) report.stored_bytes += length;
  }
  report.digests.push_back(root_digest(manifest));
}

Result<CommitPrefix> put_manifest(const PreparedTree& tree, const ArrayWriter& writer,
                                  storage::Store& store, bool write_index) {
  CAIRN_TRY_ASSIGN(const std::string text, dump_manifest(tree.manifest));
  CAIRN_TRY(store.put(writer.manifest_name(), as_bytes(text)));
  CommitPrefix prefix;
  prefix.record.name = tree.manifest.prefix;
  prefix.record.manifest = writer.manifest_name();
  prefix.record.manifest_bytes = text.size();
  prefix.record.manifest_sha256 = sha256_hex(as_bytes(text));
  prefix.record.entries = writer.entries();
  if (!tree.manifest.structure_file.empty())
    prefix.record.entries.push_back(structure_name(tree.manifest.prefix));
  if (write_index && tree.manifest.layout == kZarr2Layout)
    prefix.arrays = index_list(indexed_arrays(tree.manifest));
  return prefix;
}

/// What the reference system needs to load the prefix with its containers: the caller's text, or
/// ours.
Result<void> put_structure(const SaveOptions& options, storage::Store& store, PreparedTree& tree) {
  Manifest& manifest = tree.manifest;
  const std::string& prefix = manifest.prefix;
  if (options.layout != kZarr2Layout || !options.write_index || prefix.empty()) return {};
  const auto text = tree.structure_text ? tree.structure_text : dump_eformer_structure(manifest);
  if (!text) return {};
  manifest.structure_file = sha256_hex(as_bytes(*text));
  CAIRN_TRY(store.put(structure_name(prefix), as_bytes(*text)));
  return {};
}

/// The mesh that arrays lie on, or the one that the caller has in mind.
void add_mesh(const PreparedTree& tree, const SaveOptions& options, Manifest& manifest) {
  const auto on_mesh = std::ranges::find_if(
      tree.arrays, [](const PlannedArray& array) { return array.sharding.named() != nullptr; });
  manifest.mesh =
      on_mesh != tree.arrays.end() ? on_mesh->sharding.named()->mesh().axes() : options.mesh;
  for (ManifestArray& array : manifest.arrays) {
    const auto wish = options.wishes.find(array.path);
    if (!array.spec && wish != options.wishes.end()) array.spec = wish->second;
  }
}

Result<void> divide_alone(std::vector<PreparedTree>& trees) {
  std::vector<std::vector<PlannedArray>*> arrays;
  arrays.reserve(trees.size());
  for (PreparedTree& tree : trees) arrays.push_back(&tree.arrays);
  return divide_work(arrays, 0, 1);
}

class DirectorySave final : public SaveSteps {
 public:
  DirectorySave(std::vector<PreparedTree> trees, Uri uri, SaveOptions options, Runtime& runtime,
                SaveInternals internals)
      : trees_(std::move(trees)),
        uri_(std::move(uri)),
        options_(std::move(options)),
        internals_(std::move(internals)),
        runtime_(runtime) {}

  ~DirectorySave() override {
    if (committed_ || !destination_) return;
    writers_.clear();
    attempt_.reset();
    destination_->unmake();
  }

  Result<void> begin() override {
    CAIRN_TRY_ASSIGN(destination_, open_destination(uri_, runtime_));
    CAIRN_TRY(divide_alone(trees_));
    if (internals_.hash_chunks) leave_to_writers(trees_, 1);
    CAIRN_TRY_ASSIGN(writers_, make_writers(trees_, options_, runtime_));
    CAIRN_TRY(hash_trees(trees_, Hash::kChanging, options_, runtime_));
    return destination_->make();
  }

  const Writers& writers() const override { return writers_; }

  Result<SaveReport> complete(const Write& write) override {
    CAIRN_TRY_ASSIGN(attempt_, destination_->begin(attempt_options(trees_, internals_, 1)));
    if (!options_.overwrite) CAIRN_TRY(check_replaced_trees(trees_, uri_, runtime_));
    enter("writing");
    CAIRN_TRY(open_writers(writers_, {.data = &attempt_->data()}));
    CAIRN_TRY(write([this](std::uint64_t done, std::uint64_t total) {
      attempt_->count(done, total);
      if (options_.progress) options_.progress(done, total);
    }));
    CAIRN_TRY(hash_trees(trees_, Hash::kLasting, options_, runtime_));
    CAIRN_TRY_ASSIGN(auto sums, take_sums(writers_, trees_));
    enter("syncing");
    CAIRN_TRY_ASSIGN(auto finished, finish_trees(std::move(trees_), writers_, std::move(sums),
                                                 *attempt_, options_));
    finished.request.mark = internals_.mark;
    finished.report.path = uri_.to_string();
    finished.report.written_bytes = finished.report.stored_bytes;
    enter("committing");
    CAIRN_TRY(attempt_->commit(finished.request));
    committed_ = true;
    return finished.report;
  }

 private:
  void enter(std::string_view phase) {
    attempt_->enter(phase);
    if (internals_.phase) internals_.phase(phase);
  }

  std::vector<PreparedTree> trees_;
  const Uri uri_;
  std::unique_ptr<Destination> destination_;
  const SaveOptions options_;
  const SaveInternals internals_;
  Runtime& runtime_;
  bool committed_ = false;
  std::unique_ptr<Attempt> attempt_;
  Writers writers_;  // they write into the attempt's store
};

/// One file.
class BareSave final : public SaveSteps {
 public:
  BareSave(std::vector<PreparedTree> trees, Uri uri, SaveOptions options, Runtime& runtime,
           SaveInternals internals)
      : trees_(std::move(trees)),
        uri_(std::move(uri)),
        options_(std::move(options)),
        internals_(std::move(internals)),
        runtime_(runtime) {}

  Result<void> begin() override {
    CAIRN_TRY(divide_alone(trees_));
    const auto [directory, name] = split_uri(uri_);
    CAIRN_TRY_ASSIGN(store_, storage::open_store(directory, {.file_system = &runtime_.file_system(),
                                                             .create = true}));
    ArrayWriterOptions to{.bare_name = name,
                          .head = &trees_.front().manifest,
                          .with_sha256 = options_.enable_validation};
    CAIRN_TRY_ASSIGN(auto writer, make_safetensors_writer(trees_.front().arrays, to));
    writers_.push_back(std::move(writer));
    return hash_trees(trees_, Hash::kChanging, options_, runtime_);
  }

  const Writers& writers() const override { return writers_; }

  Result<SaveReport> complete(const Write& write) override {
    if (!options_.overwrite) CAIRN_TRY(check_replaced_file(trees_.front(), uri_, runtime_));
    CAIRN_TRY(open_writers(writers_, {.data = store_.get()}));
    enter("writing");
    CAIRN_TRY(write(options_.progress));
    CAIRN_TRY(hash_trees(trees_, Hash::kLasting, options_, runtime_));
    CAIRN_TRY_ASSIGN(auto sums, take_sums(writers_, trees_));
    enter("committing");
    CAIRN_TRY_ASSIGN(const auto allowed, take_guard(internals_.guard));
    Manifest written = trees_.front().manifest;
    CAIRN_TRY(writers_.front()->finish(written, std::move(sums.front())));
    CAIRN_TRY(store_->sync());
    SaveReport report;
    report.path = uri_.to_string();
    count(written, report);
    report.written_bytes = report.stored_bytes;
    return report;
  }

 private:
  void enter(std::string_view phase) {
    if (internals_.phase) internals_.phase(phase);
  }

  std::vector<PreparedTree> trees_;
  const Uri uri_;
  const SaveOptions options_;
  const SaveInternals internals_;
  Runtime& runtime_;
  std::unique_ptr<storage::Store> store_;
  Writers writers_;
};

}  // namespace

AttemptOptions attempt_options(const std::vector<PreparedTree>& trees,
                               const SaveInternals& internals, int ranks) {
  AttemptOptions birth;
  for (const PreparedTree& tree : trees) birth.prefixes.push_back(tree.manifest.prefix);
  birth.run_id = internals.run_id;
  birth.guard = internals.guard;
  birth.ranks = ranks;
  return birth;
}

Result<Writers> make_writers(const std::vector<PreparedTree>& trees, const SaveOptions& options,
                             Runtime& runtime) {
  Writers writers;
  for (const PreparedTree& tree : trees) {
    ArrayWriterOptions to{.prefix = tree.manifest.prefix,
                          .shard_size = options.shard_size,
                          .bare_name = {},
                          .head = nullptr,
                          .with_sha256 = options.enable_validation,
                          .rank = runtime.rank(),
                          .ranks = runtime.ranks(),
                          .pieces_name = std::to_string(writers.size())};
    CAIRN_TRY_ASSIGN(auto writer, options.layout == kZarr2Layout
                                      ? make_zarr2_writer(tree.arrays, to)
                                      : make_safetensors_writer(tree.arrays, to));
    writers.push_back(std::move(writer));
  }
  return writers;
}

void leave_to_writers(std::vector<PreparedTree>& trees, int ranks) {
  for (PreparedTree& tree : trees) {
    for (PlannedArray& array : tree.arrays) {
      if (array.stored.chunk_count() == 0) continue;
      if (ranks > 1 || !array.source->immutable()) array.work.hasher.reset();
    }
  }
}

Result<void> hash_trees(std::vector<PreparedTree>& trees, Hash which, const SaveOptions& options,
                        Runtime& runtime) {
  for (PreparedTree& tree : trees) {
    if (options.enable_validation) {
      tree.sha256.resize(tree.arrays.size());
      CAIRN_TRY(for_each_index(
          runtime.executor(), tree.arrays.size(), [&](std::size_t i) -> Result<void> {
            const PlannedArray& array = tree.arrays[i];
            if (array.work.hasher != runtime.rank()) return {};
            if (!array.source || array.source->immutable() != (which == Hash::kLasting)) return {};
            CAIRN_TRY_ASSIGN(tree.sha256[i], hash_array(array, runtime));
            return {};
          }));
    }
    if (which == Hash::kChanging) forget_changing(tree.arrays);
  }
  return {};
}

Result<void> open_writers(const Writers& writers, const WriterStores& stores) {
  for (const auto& writer : writers) CAIRN_TRY(writer->open(stores));
  return {};
}

Result<void> write_in_place(ArrayWriter& writer, const WriteJob& job, Runtime& runtime) {
  const ByteBudget::Lease lease = runtime.budget().acquire(job.make_bytes + job.encode_bytes);
  Buffer scratch;
  CAIRN_TRY_ASSIGN(const ByteSpan cells, writer.cells(job, scratch));
  return writer.write(job, cells);
}

Result<void> write_jobs(const Writers& writers, JobsOf which, const ProgressSink& sink,
                        Runtime& runtime) {
  std::vector<std::pair<ArrayWriter*, const WriteJob*>> jobs;
  std::uint64_t total = 0;
  for (const auto& writer : writers) {
    for (const WriteJob& job : (writer.get()->*which)()) {
      jobs.emplace_back(writer.get(), &job);
      total += job.bytes;
    }
  }
  Progress progress(sink, total);
  return for_each_index(runtime.executor(), jobs.size(), [&](std::size_t i) -> Result<void> {
    CAIRN_TRY(write_in_place(*jobs[i].first, *jobs[i].second, runtime));
    progress.add(jobs[i].second->bytes);
    return {};
  });
}

Result<SumsByPrefix> take_sums(const Writers& writers, std::vector<PreparedTree>& trees) {
  SumsByPrefix sums;
  for (std::size_t i = 0; i < writers.size(); ++i) {
    CAIRN_TRY_ASSIGN(auto taken, writers[i]->take_sums());
    const auto hashed = std::exchange(trees[i].sha256, {});
    for (std::size_t n = 0; n < hashed.size(); ++n) {
      const std::uint64_t total = piece_total(trees[i].arrays[n].stored);
      if (hashed[n]) taken.hashes.push_back({static_cast<std::uint32_t>(n), 0, total, *hashed[n]});
    }
    sums.push_back(std::move(taken));
  }
  return sums;
}

Result<FinishedTrees> finish_trees(std::vector<PreparedTree> trees, const Writers& writers,
                                   SumsByPrefix sums, Attempt& attempt,
                                   const SaveOptions& options) {
  FinishedTrees finished;
  finished.request.step = options.step;
  finished.report.attempt = attempt.id();
  for (std::size_t i = 0; i < trees.size(); ++i) {
    Manifest& manifest = trees[i].manifest;
    manifest.attempt = attempt.id();
    CAIRN_TRY(writers[i]->finish(manifest, std::move(sums[i])));
    add_mesh(trees[i], options, manifest);
    CAIRN_TRY(put_structure(options, attempt.data(), trees[i]));
    CAIRN_TRY_ASSIGN(auto prefix,
                     put_manifest(trees[i], *writers[i], attempt.data(), options.write_index));
    finished.request.prefixes.push_back(std::move(prefix));
    count(manifest, finished.report);
  }
  finished.request.checkpoint_metadata = dump_checkpoint_metadata(
      describe_checkpoint(trees.back().manifest, options.enable_validation));
  CAIRN_TRY(attempt.data().sync());
  return finished;
}

Result<std::unique_ptr<SaveSteps>> save_alone(std::vector<PreparedTree> trees, const Uri& uri,
                                              SaveOptions options, Runtime& runtime,
                                              SaveInternals internals) {
  using Steps = std::unique_ptr<SaveSteps>;
  if (is_bare_file(uri.path))
    return Steps(std::make_unique<BareSave>(std::move(trees), uri, std::move(options), runtime,
                                            std::move(internals)));
  return Steps(std::make_unique<DirectorySave>(std::move(trees), uri, std::move(options), runtime,
                                               std::move(internals)));
}

Result<SaveReport> save_now(SaveSteps& steps, Runtime& runtime) {
  CAIRN_TRY(steps.begin());
  return steps.complete([&](const ProgressSink& progress) {
    return write_jobs(steps.writers(), &ArrayWriter::jobs, progress, runtime);
  });
}

}  // namespace cairn
