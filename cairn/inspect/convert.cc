// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/convert.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/inspect/stored_source.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/manifest/names.h"
#include "cairn/runtime/in_flight.h"
#include "cairn/save/save_prepared.h"
#include "cairn/tree/flatten.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

/// The structure that a foreign tree gets: nested dicts. `order` becomes the arrays in the order of
/// its leaves.
Result<Json> nested_structure(const OpenedPrefix& prefix, std::vector<std::size_t>& order) {
  std::vector<NamedLeaf> leaves;
  for (const ManifestArray& array : prefix.manifest.arrays) {
    CAIRN_TRY_ASSIGN(Array empty, Array::allocate(array.stored.dtype, {0}));
    leaves.push_back({array.path, ShardedArray(std::move(empty))});
  }
  std::vector<std::size_t> numbers(leaves.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  for (const auto& [path, value] : prefix.values) leaves.push_back({path, value});
  CAIRN_TRY_ASSIGN(const Tree tree, nest(std::move(leaves)));
  CAIRN_TRY_ASSIGN(auto flat, flatten(tree));
  std::erase_if(flat, [](const NamedLeaf& leaf) { return !is_array_like(leaf.leaf); });
  std::ranges::sort(
      numbers, {}, [&](std::size_t i) -> const KeyPath& { return prefix.manifest.arrays[i].path; });
  // Dicts are sorted part by part, as the paths just were.
  order = std::move(numbers);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (flat[i].path != prefix.manifest.arrays[order[i]].path) {
      return Error(Code::kInternal, "convert/order",
                   "leaves of a nested tree came out in another order");
    }
  }
  return structure_to_json(tree);
}

Result<PreparedTree> prepare(const OpenedPrefix& prefix, const SaveOptions& options,
                             Runtime& reader, Runtime& runtime) {
  const Manifest& source = prefix.manifest;
  std::vector<std::size_t> order(source.arrays.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  Json structure = source.structure;
  if (!has_structure(prefix)) {
    CAIRN_TRY_ASSIGN(structure, nested_structure(prefix, order));
  }
  SaveOptions kept = options;
  if (!kept.step) kept.step = source.step;
  if (kept.metadata.is_null()) kept.metadata = source.metadata;
  if (kept.extras.is_null()) kept.extras = source.extras;
  CAIRN_TRY_ASSIGN(const PlanOptions plan, plan_options(kept));
  PreparedTree tree{{}, manifest_head(prefix.name, std::move(structure), kept, runtime)};
  for (const std::size_t i : order) {
    const ManifestArray& array = source.arrays[i];
    CAIRN_TRY_ASSIGN(auto planned,
                     plan_array(array.path, array.stored.dtype, array.stored.shape, {}, plan));
    planned.source = stored_source(prefix, i, planned.stored.dtype, reader);
    tree.arrays.push_back(std::move(planned));
  }
  return tree;
}

/// A checkpoint that is converted onto itself has lost what it was.
Result<void> check_other_place(const std::string& from, const Uri& to, Runtime& runtime) {
  storage::FileSystem& fs = runtime.file_system();
  bool same = from == to.to_string();
  if (to.scheme == "file") {
    const auto source = fs.stat(nullptr, from, true);
    const auto target = fs.stat(nullptr, to.path, true);
    same = source && target && source->inode == target->inode && source->device == target->device;
  }
  if (!same) return {};
  return Error(
      Code::kAlreadyExists, "convert/onto-itself",
      fmt::format("{} would be replaced by what is made of it; give another path, or allow "
                  "it to be overwritten",
                  from));
}

Result<SaveReport> convert_once(const Checkpoint& from, const std::string& path,
                                const ConvertOptions& options, Runtime& runtime) {
  SaveOptions save = options.save;
  if (is_bare_file(path)) save.layout = kSafetensorsLayout;
  CAIRN_TRY_ASSIGN(const auto prefixes, select_prefixes(from, options.prefix));
  // Reading happens inside the writer's tasks, on their threads and with a budget of its own.
  const auto reader = runtime.on_one_thread();
  std::vector<PreparedTree> trees;
  for (const OpenedPrefix* prefix : prefixes) {
    CAIRN_TRY_ASSIGN(auto tree, prepare(*prefix, save, *reader, runtime).in([&] {
      return "converting " + from.path;
    }));
    trees.push_back(std::move(tree));
  }
  CAIRN_TRY(check_path(path, trees.size()));
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(path));
  if (!save.overwrite) CAIRN_TRY(check_other_place(from.path, uri, runtime));
  wait_for_saves(path, runtime.rank());
  CAIRN_TRY_ASSIGN(const auto steps, save_alone(std::move(trees), uri, save, runtime));
  return save_now(*steps, runtime).in([&] { return "saving " + path; });
}

}  // namespace

Result<SaveReport> convert(const Checkpoint& from, const std::string& path,
                           const ConvertOptions& options, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(auto report, read_settled(from, runtime, [&](const Checkpoint& opened) {
                     return convert_once(opened, path, options, runtime);
                   }));
  if (options.save.committed) CAIRN_TRY(options.save.committed(report));
  return report;
}

}  // namespace cairn
