// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/load.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/checkpoint/match_template.h"
#include "cairn/checkpoint/read_boxes.h"
#include "cairn/tree/flatten.h"
#include "cairn/tree/structure.h"

namespace cairn::inline checkpoint {

namespace {

Result<void> check_keys(const OpenedPrefix& prefix, const std::vector<KeyPath>& keys) {
  for (const KeyPath& key : keys) {
    const auto hit = [&](const KeyPath& leaf) { return leaf.starts_with(key); };
    const bool found = std::ranges::any_of(prefix.manifest.arrays, hit, &ManifestArray::path) ||
                       std::ranges::any_of(prefix.values, hit, &std::pair<KeyPath, Value>::first);
    if (found) continue;
    return Error(
        Code::kNotFound, "load/key-missing",
        fmt::format("there is no leaf or subtree '{}'; `cairn show` lists all", key.text()));
  }
  return {};
}

DType loaded_type(const ManifestArray& array, const LoadOptions& options) {
  const DType stored = array.stored.dtype;
  return options.dtype && is_float(stored) ? *options.dtype : stored;
}

/// The arrays that are wanted, and memory for each.
struct Work {
  std::vector<std::size_t> which;
  std::vector<Array> destinations;
};

Result<Work> choose_all(const OpenedPrefix& prefix, const LoadOptions& options) {
  Work work;
  for (std::size_t i = 0; i < prefix.manifest.arrays.size(); ++i) {
    const ManifestArray& array = prefix.manifest.arrays[i];
    if (!is_selected(array.path, options.keys)) continue;
    CAIRN_TRY_ASSIGN(auto memory,
                     Array::allocate(loaded_type(array, options), array.stored.shape).in([&] {
                       return "leaf " + array.path.text();
                     }));
    work.which.push_back(i);
    work.destinations.push_back(std::move(memory));
  }
  return work;
}

Result<void> validate_arrays(const OpenedPrefix& prefix, const std::vector<std::size_t>& which,
                             Runtime& runtime) {
  return for_each_index(runtime.executor(), which.size(), [&](std::size_t n) -> Result<void> {
    const ManifestArray& array = prefix.manifest.arrays[which[n]];
    if (array.sha256.empty()) return {};
    CAIRN_TRY_ASSIGN(const Array whole,
                     load_box(prefix, which[n], Box::whole(array.stored.shape), runtime, false));
    const std::string found = sha256_hex(whole.bytes());
    if (found == array.sha256) return {};
    return Error(
        Code::kCorrupt, "load/sha256",
        fmt::format("leaf {}: SHA-256 is {}, expected {}", array.path.text(), found, array.sha256));
  });
}

void report_arrays(const OpenedPrefix& prefix, const Work& work, LoadReport& report) {
  for (std::size_t n = 0; n < work.which.size(); ++n) {
    const ManifestArray& array = prefix.manifest.arrays[work.which[n]];
    const std::string key = array.path.text();
    if (work.destinations[n].dtype() != array.stored.dtype) report.cast.push_back(key);
    if (array.sums.empty() && array.stored.chunk_count() > 0) report.unchecked.push_back(key);
    report.bytes += work.destinations[n].nbytes();
    report.loaded.push_back(key);
  }
}

/// The tree as it was saved, or nested dicts where the structure is not known or only part is
/// wanted.
Result<Tree> build_tree(const OpenedPrefix& prefix, const LoadOptions& options, const Work& work) {
  if (!prefix.foreign && options.keys.empty()) {
    std::vector<ShardedArray> arrays(work.destinations.begin(), work.destinations.end());
    return tree_from_structure(prefix.manifest.structure, std::move(arrays));
  }
  std::vector<NamedLeaf> leaves;
  for (std::size_t n = 0; n < work.which.size(); ++n) {
    leaves.push_back(
        {prefix.manifest.arrays[work.which[n]].path, ShardedArray(work.destinations[n])});
  }
  for (const auto& [path, value] : prefix.values) {
    if (is_selected(path, options.keys)) leaves.push_back({path, value});
  }
  return nest(std::move(leaves));
}

Result<Loaded> load_like(const OpenedPrefix& prefix, const LoadOptions& options, Runtime& runtime) {
  Loaded loaded;
  CAIRN_TRY_ASSIGN(auto match, match_template(prefix, options, loaded.report));
  Work work{match.which, match.destinations};
  if (options.validate) CAIRN_TRY(validate_arrays(prefix, work.which, runtime));
  CAIRN_TRY(
      load_arrays(prefix, work.which, work.destinations, options.check, options.progress, runtime));
  report_arrays(prefix, work, loaded.report);
  CAIRN_TRY_ASSIGN(loaded.tree, std::move(match).build(*options.like));
  return loaded;
}

Result<Loaded> load_plain(const OpenedPrefix& prefix, const LoadOptions& options,
                          Runtime& runtime) {
  Loaded loaded;
  CAIRN_TRY(check_keys(prefix, options.keys));
  CAIRN_TRY_ASSIGN(const Work work, choose_all(prefix, options));
  if (options.validate) CAIRN_TRY(validate_arrays(prefix, work.which, runtime));
  CAIRN_TRY(
      load_arrays(prefix, work.which, work.destinations, options.check, options.progress, runtime));
  report_arrays(prefix, work, loaded.report);
  CAIRN_TRY_ASSIGN(loaded.tree, build_tree(prefix, options, work));
  return loaded;
}

}  // namespace

Result<void> load_arrays(const OpenedPrefix& prefix, const std::vector<std::size_t>& which,
                         std::vector<Array> destinations, bool check, const ProgressSink& progress,
                         Runtime& runtime) {
  std::vector<BoxTarget> targets;
  targets.reserve(which.size());
  for (std::size_t n = 0; n < which.size(); ++n) {
    const ManifestArray& array = prefix.manifest.arrays[which[n]];
    targets.push_back({{&array, Box::whole(array.stored.shape)}, std::move(destinations[n])});
  }
  return read_boxes(*prefix.store, std::move(targets), {.check = check, .progress = progress},
                    runtime);
}

Result<Array> load_box(const OpenedPrefix& prefix, std::size_t which, const Box& box,
                       Runtime& runtime, bool check) {
  const ManifestArray& array = prefix.manifest.arrays[which];
  CAIRN_TRY_ASSIGN(Array result, Array::allocate(array.stored.dtype, box.shape()));
  std::vector<BoxTarget> targets{{{&array, box}, result}};
  CAIRN_TRY(
      read_boxes(*prefix.store, std::move(targets), {.check = check, .progress = {}}, runtime));
  return result;
}

Result<Loaded> load(const Checkpoint& checkpoint, const LoadOptions& options, Runtime& runtime) {
  if (options.dtype && !is_float(*options.dtype)) {
    return Error(Code::kInvalidArgument, "load/float-dtype",
                 fmt::format("dtype must be a float type, not {}", dtype_name(*options.dtype)));
  }
  CAIRN_TRY_ASSIGN(const OpenedPrefix* prefix, checkpoint.prefix(options.prefix));
  CAIRN_TRY_ASSIGN(Loaded loaded, (options.like != nullptr ? load_like(*prefix, options, runtime)
                                                           : load_plain(*prefix, options, runtime))
                                      .in([&] { return "loading " + checkpoint.path; }));
  loaded.metadata = prefix->manifest.metadata;
  loaded.extras = prefix->manifest.extras;
  loaded.report.notes.insert(loaded.report.notes.end(), checkpoint.notes.begin(),
                             checkpoint.notes.end());
  return loaded;
}

Result<Loaded> load(const std::string& path, const LoadOptions& options, Runtime& runtime) {
  for (int reopened = 0;; ++reopened) {
    CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_checkpoint(path, runtime));
    auto loaded = load(checkpoint, options, runtime);
    if (loaded || reopened == kMostReopenings || !has_changed(checkpoint, runtime)) return loaded;
  }
}

}  // namespace cairn::inline checkpoint
