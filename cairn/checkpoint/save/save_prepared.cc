// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/save/save_prepared.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/base/uri.h"
#include "cairn/checkpoint/layout/eformer_index.h"
#include "cairn/checkpoint/save/divide_work.h"
#include "cairn/storage/open.h"

namespace cairn::inline checkpoint {

namespace {

// Hashes one array in C order, in pieces, so that no array is gathered whole.
Result<std::string> hash_array(const PlannedArray& array, Runtime& runtime) {
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
  return sha.hex();
}

void count(const Manifest& manifest, SaveReport& report) {
  report.arrays += manifest.arrays.size();
  for (const ManifestArray& array : manifest.arrays) {
    report.bytes += Box::whole(array.stored.shape).elements() * item_size(array.stored.dtype);
    for (const std::uint64_t length : array.sums.lengths()) report.stored_bytes += length;
  }
  report.digests.push_back(root_digest(manifest));
}

/// checkpoint_metadata.json as the reference system writes it, of the last tree.
std::string checkpoint_metadata(const PreparedTree& tree, bool with_arrays) {
  Json::Object checksum;
  Json::Object arrays;
  for (const ManifestArray& array : tree.manifest.arrays) {
    if (!with_arrays) break;
    if (!array.sha256.empty()) checksum.emplace_back(array.path.text(), array.sha256);
    arrays.emplace_back(
        array.path.text(),
        Json::Object{{"dtype", dtype_name(array.stored.dtype)},
                     {"shape", Json::Array(array.stored.shape.begin(), array.stored.shape.end())}});
  }
  const Json& user = tree.manifest.metadata;
  const Json json(Json::Object{{"version", writer_name()},
                               {"timestamp", tree.manifest.time},
                               {"checksum", std::move(checksum)},
                               {"array_metadata", std::move(arrays)},
                               {"framework_version", nullptr},
                               {"custom_metadata", user.is_null() ? Json(Json::Object{}) : user}});
  return dump_json(json, JsonStyle{.ascii = true, .python_spaces = true});
}

Json index_of(const Manifest& manifest) {
  const std::string directory = prefix_directory(manifest.prefix);
  std::vector<IndexedArray> arrays;
  arrays.reserve(manifest.arrays.size());
  for (const ManifestArray& array : manifest.arrays) {
    arrays.push_back({join_path(directory, array.stored.key), array.stored.shape,
                      std::string(dtype_name(array.stored.dtype))});
  }
  return index_list(arrays);
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
  if (write_index && tree.manifest.layout == kZarr2Layout) prefix.arrays = index_of(tree.manifest);
  return prefix;
}

Result<SaveReport> save_directory(std::vector<PreparedTree> trees, const std::string& path,
                                  const SaveOptions& options, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto attempt, Attempt::begin(runtime.file_system(), runtime.clock(), path,
                                                      attempt_options(trees, options, 1)));
  CAIRN_TRY_ASSIGN(const Writers writers,
                   make_writers(trees, {.data = &attempt->data()}, options, runtime));
  CAIRN_TRY(write_jobs(writers, &ArrayWriter::jobs, options.progress, runtime));
  CAIRN_TRY_ASSIGN(auto sums, take_sums(writers));
  CAIRN_TRY_ASSIGN(auto finished,
                   finish_trees(std::move(trees), writers, std::move(sums), *attempt, options));
  finished.report.path = path;
  finished.report.written_bytes = finished.report.stored_bytes;
  CAIRN_TRY(attempt->commit(finished.request));
  return finished.report;
}

Result<SaveReport> save_bare(PreparedTree tree, const Uri& uri, const SaveOptions& options,
                             Runtime& runtime) {
  const auto [directory, name] = split_uri(uri);
  CAIRN_TRY_ASSIGN(
      const auto store,
      storage::open_store(directory, {.file_system = &runtime.file_system(), .create = true}));
  ArrayWriterOptions to{.prefix = {},
                        .shard_size = 0,
                        .bare_name = name,
                        .head = &tree.manifest,
                        .with_sha256 = options.enable_validation,
                        .store = store.get(),
                        .runtime = &runtime};
  Writers writers;
  CAIRN_TRY_ASSIGN(auto writer, make_safetensors_writer(tree.arrays, to));
  writers.push_back(std::move(writer));
  CAIRN_TRY(write_jobs(writers, &ArrayWriter::jobs, options.progress, runtime));
  CAIRN_TRY_ASSIGN(auto sums, writers.front()->take_sums());
  CAIRN_TRY_ASSIGN(const auto allowed, take_guard(options.guard));
  Manifest written = tree.manifest;
  CAIRN_TRY(writers.front()->finish(written, std::move(sums), tree.sha256));
  CAIRN_TRY(store->sync());
  SaveReport report;
  report.path = uri.to_string();
  count(written, report);
  report.written_bytes = report.stored_bytes;
  return report;
}

}  // namespace

AttemptOptions attempt_options(const std::vector<PreparedTree>& trees, const SaveOptions& options,
                               int ranks) {
  AttemptOptions birth;
  for (const PreparedTree& tree : trees) birth.prefixes.push_back(tree.manifest.prefix);
  birth.run_id = options.run_id;
  birth.guard = options.guard;
  birth.ranks = ranks;
  return birth;
}

Result<Writers> make_writers(const std::vector<PreparedTree>& trees, const WriterPlace& place,
                             const SaveOptions& options, Runtime& runtime) {
  Writers writers;
  for (const PreparedTree& tree : trees) {
    ArrayWriterOptions to{.prefix = tree.manifest.prefix,
                          .shard_size = options.shard_size,
                          .bare_name = {},
                          .head = nullptr,
                          .with_sha256 = false,
                          .rank = runtime.rank(),
                          .ranks = runtime.ranks(),
                          .store = place.data,
                          .pieces = place.pieces,
                          .pieces_name = std::to_string(writers.size()),
                          .runtime = &runtime};
    CAIRN_TRY_ASSIGN(auto writer, options.layout == kZarr2Layout
                                      ? make_zarr2_writer(tree.arrays, to)
                                      : make_safetensors_writer(tree.arrays, to));
    writers.push_back(std::move(writer));
  }
  return writers;
}

Result<void> hash_trees(std::vector<PreparedTree>& trees, Runtime& runtime) {
  for (PreparedTree& tree : trees) {
    tree.sha256.resize(tree.arrays.size());
    CAIRN_TRY(
        for_each_index(runtime.executor(), tree.arrays.size(), [&](std::size_t i) -> Result<void> {
          if (!tree.arrays[i].whole_here && runtime.ranks() > 1) return {};
          CAIRN_TRY_ASSIGN(tree.sha256[i], hash_array(tree.arrays[i], runtime));
          return {};
        }));
  }
  return {};
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
    CAIRN_TRY(jobs[i].first->write(*jobs[i].second));
    progress.add(jobs[i].second->bytes);
    return {};
  });
}

Result<SumsByPrefix> take_sums(const Writers& writers) {
  SumsByPrefix sums;
  for (const auto& writer : writers) {
    CAIRN_TRY_ASSIGN(auto taken, writer->take_sums());
    sums.push_back(std::move(taken));
  }
  return sums;
}

Result<FinishedTrees> finish_trees(std::vector<PreparedTree> trees, const Writers& writers,
                                   SumsByPrefix sums, Attempt& attempt,
                                   const SaveOptions& options) {
  FinishedTrees finished;
  finished.request.step = options.step;
  finished.request.mark = options.mark;
  finished.report.attempt = attempt.id();
  for (std::size_t i = 0; i < trees.size(); ++i) {
    Manifest& manifest = trees[i].manifest;
    manifest.attempt = attempt.id();
    const auto on_mesh = std::ranges::find_if(trees[i].arrays, [](const PlannedArray& array) {
      return array.sharding.named() != nullptr;
    });
    if (on_mesh != trees[i].arrays.end()) manifest.mesh = on_mesh->sharding.named()->mesh().axes();
    CAIRN_TRY(writers[i]->finish(manifest, std::move(sums[i]), trees[i].sha256));
    CAIRN_TRY_ASSIGN(auto prefix,
                     put_manifest(trees[i], *writers[i], attempt.data(), options.write_index));
    finished.request.prefixes.push_back(std::move(prefix));
    count(manifest, finished.report);
  }
  finished.request.checkpoint_metadata =
      checkpoint_metadata(trees.back(), options.enable_validation);
  CAIRN_TRY(attempt.data().sync());
  return finished;
}

Result<SaveReport> save_prepared(std::vector<PreparedTree> trees, const std::string& path,
                                 const SaveOptions& options, Runtime& runtime) {
  CAIRN_TRY(check_path(path, trees.size()));
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(path));
  std::vector<std::vector<PlannedArray>*> arrays;
  for (PreparedTree& tree : trees) arrays.push_back(&tree.arrays);
  CAIRN_TRY(divide_work(arrays, 0, 1));
  const bool bare = path.ends_with(".safetensors");
  if (options.enable_validation) CAIRN_TRY(hash_trees(trees, runtime));
  return (bare ? save_bare(std::move(trees.front()), uri, options, runtime)
               : save_directory(std::move(trees), uri.path, options, runtime))
      .in([&] { return "saving " + path; });
}

}  // namespace cairn::inline checkpoint
