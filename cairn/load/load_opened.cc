// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load_opened.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/base/human.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/check_digest.h"
#include "cairn/load/load_target.h"
#include "cairn/load/match_template.h"
#include "cairn/load/read_boxes.h"
#include "cairn/load/seen_path.h"
#include "cairn/sharding/make_sharded.h"
#include "cairn/tree/flatten.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

Result<void> check_keys(const OpenedPrefix& prefix, const std::vector<KeyPath>& keys) {
  std::vector<std::string> missing;
  for (const KeyPath& key : keys) {
    const auto hit = [&](const KeyPath& leaf) { return leaf.starts_with(key); };
    const bool found = std::ranges::any_of(prefix.manifest.arrays, hit, &ManifestArray::path) ||
                       std::ranges::any_of(prefix.values, hit, &std::pair<KeyPath, Value>::first);
    if (!found) missing.push_back("'" + key.text() + "'");
  }
  if (missing.empty()) return {};
  return Error(Code::kNotFound, "load/key-missing",
               fmt::format("there is no leaf or subtree {}; `cairn show` lists all",
                           fmt::join(missing, ", ")));
}

DType loaded_type(const ManifestArray& array, const LoadOptions& options) {
  const DType stored = array.stored.dtype;
  return options.dtype && is_float(stored) ? *options.dtype : stored;
}

Result<LoadWork> choose_all(const OpenedPrefix& prefix, const LoadOptions& options,
                            const LoadTarget& target, int rank) {
  LoadWork work;
  work.which = target.selected();
  CAIRN_TRY_ASSIGN(const auto shardings, target.shardings_of(work.which));
  for (std::size_t n = 0; n < work.which.size(); ++n) {
    const ManifestArray& array = prefix.manifest.arrays[work.which[n]];
    CAIRN_TRY_ASSIGN(auto memory, allocate_sharded(loaded_type(array, options), array.stored.shape,
                                                   shardings[n], rank)
                                      .in([&] { return "leaf " + array.path.text(); }));
    work.destinations.push_back(std::move(memory));
  }
  return work;
}

Result<void> validate_arrays(const OpenedPrefix& prefix, const std::vector<std::size_t>& which,
                             Runtime& runtime) {
  const auto digests = digests_of(prefix, which);
  return for_each_index(runtime.executor(), digests.size(),
                        [&](std::size_t n) { return check_digest(prefix, digests[n], runtime); });
}

void report_arrays(const OpenedPrefix& prefix, const LoadWork& work, LoadReport& report) {
  for (std::size_t n = 0; n < work.which.size(); ++n) {
    const ManifestArray& array = prefix.manifest.arrays[work.which[n]];
    const std::string key = array.path.text();
    if (work.destinations[n].dtype() != array.stored.dtype) report.cast.push_back(key);
    if (array.sums.empty() && array.stored.chunk_count() > 0) report.unchecked.push_back(key);
    for (const Shard& shard : work.destinations[n].shards()) report.bytes += shard.data.nbytes();
    report.loaded.push_back(key);
  }
}

/// The tree as it was saved, or nested dicts where the structure is not known or only part is
/// wanted.
Result<Tree> build_tree(const OpenedPrefix& prefix, const LoadOptions& options,
                        const LoadWork& work) {
  if (has_structure(prefix) && options.keys.empty())
    return tree_from_structure(prefix.manifest.structure, work.destinations);
  std::vector<NamedLeaf> leaves;
  leaves.reserve(work.which.size() + prefix.values.size());
  for (std::size_t n = 0; n < work.which.size(); ++n) {
    leaves.push_back({prefix.manifest.arrays[work.which[n]].path, work.destinations[n]});
  }
  for (const auto& [path, value] : prefix.values) {
    if (is_selected(path, options.keys)) leaves.push_back({path, value});
  }
  return nest(std::move(leaves));
}

// Ranks that load together validate each its share, and hear of each other's errors.
std::vector<std::size_t> own_share(const std::vector<std::size_t>& which, const Runtime& runtime) {
  std::vector<std::size_t> mine;
  const auto step = static_cast<std::size_t>(runtime.ranks());
  for (auto n = static_cast<std::size_t>(runtime.rank()); n < which.size(); n += step)
    mine.push_back(which[n]);
  return mine;
}

/// What is to be read and what becomes of it.
struct Preparation {
  LoadWork work;
  std::optional<TemplateMatch> match;  // with a template
  LoadReport report;
};

Result<void> check_total_memory(const LoadWork& work) {
  std::uint64_t bytes = 0;
  for (const ShardedArray& array : work.destinations) {
    for (const Shard& shard : array.shards()) bytes += shard.data.nbytes();
  }
  return check_possible_memory(
      bytes, "the load", "load some of the leaves (keys), or a part of each (sharding, mesh)");
}

Result<Preparation> prepare(const OpenedPrefix& prefix, const LoadOptions& options, int rank) {
  if (options.dtype && !is_float(*options.dtype)) {
    return Error(Code::kInvalidArgument, "load/float-dtype",
                 fmt::format("dtype must be a float type, not {}", dtype_name(*options.dtype)));
  }
  Preparation ready;
  CAIRN_TRY_ASSIGN(const LoadTarget target, LoadTarget::make(prefix, options));
  CAIRN_TRY(check_keys(prefix, options.keys));
  if (options.like != nullptr) {
    CAIRN_TRY_ASSIGN(ready.match, match_template(prefix, options, target, rank, ready.report));
    ready.work = {ready.match->which, ready.match->destinations};
  } else {
    CAIRN_TRY_ASSIGN(ready.work, choose_all(prefix, options, target, rank));
  }
  if (!options.fill) CAIRN_TRY(check_total_memory(ready.work));
  return ready;
}

/// With a template, the containers are the template's.
void take_notes(const OpenedPrefix& prefix, const LoadOptions& options, const Runtime& runtime,
                LoadReport& report) {
  if (options.like != nullptr) return;
  for (const std::string& note : prefix.notes)
    runtime.log(LogLevel::kWarning, "load/structure", note);
  report.notes = prefix.notes;
}

void log_kept(const LoadReport& report, const Runtime& runtime) {
  if (report.kept.empty()) return;
  runtime.log(LogLevel::kWarning, "load/kept",
              fmt::format("the checkpoint has no array that fits these leaves, and they keep the "
                          "template's values: {}",
                          fmt::join(report.kept, ", ")));
}

Result<Tree> call_back(Tree tree, const OpenedPrefix& prefix, const LoadOptions& options) {
  return map_leaves(std::move(tree), [&](const KeyPath& path, const Leaf& leaf) -> Result<Leaf> {
    const auto* array = std::get_if<ShardedArray>(&leaf);
    if (array == nullptr) return leaf;
    return options.callback(seen_path(prefix, path, options), *array);
  });
}

Result<Loaded> load_prefix(const OpenedPrefix& prefix, const LoadOptions& options, Runtime& runtime,
                           const SharedReader& share) {
  CAIRN_TRY_ASSIGN(Preparation ready, prepare(prefix, options, runtime.rank()));
  log_kept(ready.report, runtime);
  take_notes(prefix, options, runtime, ready.report);
  if (options.validate) {
    const auto& all = ready.work.which;
    CAIRN_TRY(validate_arrays(prefix, share ? own_share(all, runtime) : all, runtime));
  }
  CAIRN_TRY(share ? share(prefix, ready.work, options)
                  : read_arrays(prefix, ready.work, options, runtime));
  Loaded loaded;
  loaded.prefix = prefix.name;
  loaded.foreign = prefix.foreign;
  loaded.structure_file = prefix.structure_file;
  loaded.report = std::move(ready.report);
  report_arrays(prefix, ready.work, loaded.report);
  CAIRN_TRY_ASSIGN(loaded.tree, ready.match ? (*std::move(ready.match)).build(*options.like)
                                            : build_tree(prefix, options, ready.work));
  if (options.callback) {
    CAIRN_TRY_ASSIGN(loaded.tree, call_back(std::move(loaded.tree), prefix, options));
  }
  loaded.metadata = prefix.manifest.metadata;
  loaded.extras = prefix.manifest.extras;
  return loaded;
}

}  // namespace

Result<void> read_arrays(const OpenedPrefix& prefix, const LoadWork& work,
                         const LoadOptions& options, Runtime& runtime) {
  const std::size_t count = work.which.size();
  const std::size_t batch =
      options.chunk_size == 0 ? std::max<std::size_t>(count, 1) : options.chunk_size;
  for (std::size_t first = 0; first < count; first += batch) {
    std::vector<BoxTarget> targets;
    for (std::size_t n = first; n < std::min(first + batch, count); ++n) {
      const ManifestArray& array = prefix.manifest.arrays[work.which[n]];
      for (const Shard& shard : work.destinations[n].shards())
        targets.push_back({{&array, work.destinations[n].box_of(shard)}, shard.data});
    }
    CAIRN_TRY(read_boxes(*prefix.store, targets,
                         {.check = options.check, .progress = options.progress}, runtime));
  }
  return {};
}

Result<Loaded> load_opened(const Checkpoint& checkpoint, const LoadOptions& options,
                           Runtime& runtime, const SharedReader& share) {
  CAIRN_TRY_ASSIGN(const OpenedPrefix* prefix, checkpoint.prefix(options.prefix));
  const auto place = [&] { return "loading " + checkpoint.path; };
  // First, so that a checkpoint that is removed while its arrays are read can still be loaded
  // whole.
  std::optional<std::string> description;
  if (options.description) {
    CAIRN_TRY_ASSIGN(description, read_description(checkpoint, runtime).in(place));
  }
  auto done = load_prefix(*prefix, options, runtime, share).in(place);
  if (!done) return explain_failure(done.error(), checkpoint, runtime);
  // Without checksums, bytes of a later save are not noticed.
  if (!options.check) CAIRN_TRY(check_unchanged(checkpoint, runtime));
  Loaded loaded = *std::move(done);
  loaded.path = checkpoint.path;
  loaded.record = checkpoint.record;
  loaded.mark = checkpoint.mark;
  loaded.description = std::move(description);
  loaded.report.notes.insert(loaded.report.notes.end(), checkpoint.notes.begin(),
                             checkpoint.notes.end());
  return loaded;
}

}  // namespace cairn
