// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/replaced_tree.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/layout/committed.h"
#include "cairn/layout/foreign.h"
#include "cairn/layout/safetensors_opener.h"
#include "cairn/layout/strangers.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/names.h"
#include "cairn/storage/open.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

constexpr std::string_view kWhatToDo =
    "nothing was changed: choose another path, or replace it with the option overwrite "
    "(overwrite=True in Python, --overwrite for the command)";

struct LeavesThere {
  std::vector<KeyPath> paths;
  bool arrays_alone = false;  // where they come from, nothing else is stored
};

LeavesThere leaves_of(const OpenedPrefix& prefix) {
  LeavesThere leaves{.paths = {}, .arrays_alone = prefix.foreign};
  for (const ManifestArray& array : prefix.manifest.arrays) leaves.paths.push_back(array.path);
  for (const auto& [path, value] : prefix.values) leaves.paths.push_back(path);
  return leaves;
}

LeavesThere leaves_of(const std::string& prefix, const std::vector<IndexedArray>& list) {
  const std::string below = prefix_directory(prefix);
  LeavesThere leaves{.paths = {}, .arrays_alone = true};
  for (const IndexedArray& array : list)
    leaves.paths.push_back(path_of_directory(array.path, below));
  return leaves;
}

// A client may have rewritten the list of a prefix of ours: then it says which arrays there are.
LeavesThere leaves_of(const OpenedPrefix& prefix, const std::vector<IndexedArray>& list) {
  std::unordered_map<std::string, const KeyPath*> ours;
  const auto written = indexed_arrays(prefix.manifest);
  for (std::size_t i = 0; i < written.size(); ++i)
    ours.emplace(written[i].path, &prefix.manifest.arrays[i].path);
  LeavesThere leaves = leaves_of(prefix.name, list);
  std::size_t known = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto found = ours.find(list[i].path);
    if (found == ours.end()) continue;
    leaves.paths[i] = *found->second;
    ++known;
  }
  return known == list.size() && known == written.size() ? leaves_of(prefix) : leaves;
}

struct LeafDifference {
  std::vector<std::string> old_only;
  std::vector<std::string> new_only;
};

std::string leaf_name(const KeyPath& path) { return path.empty() ? "the root" : path.text(); }

Result<LeafDifference> compare_leaves(const LeavesThere& there, const PreparedTree& tree) {
  CAIRN_TRY_ASSIGN(const StructureLeaves coming, structure_leaves(tree.manifest.structure));
  std::unordered_set<std::string> old_names;
  for (const KeyPath& path : there.paths) old_names.insert(path.text());
  LeafDifference difference;
  std::unordered_set<std::string> new_names;
  const auto add = [&](const KeyPath& path, bool counts) {
    const auto [name, is_new] = new_names.insert(path.text());
    if (is_new && counts && !old_names.contains(*name))
      difference.new_only.push_back(leaf_name(path));
  };
  for (const KeyPath& path : coming.arrays) add(path, true);
  for (const auto& [path, value] : coming.values) add(path, !there.arrays_alone);
  for (const KeyPath& path : there.paths) {
    if (!new_names.contains(path.text())) difference.old_only.push_back(leaf_name(path));
  }
  return difference;
}

Result<void> check_same_leaves(const LeavesThere& there, const PreparedTree& tree,
                               const std::string& place) {
  CAIRN_TRY_ASSIGN(const LeafDifference difference, compare_leaves(there, tree));
  std::string words;
  const auto add = [&](std::string_view whose, const std::vector<std::string>& names) {
    if (names.empty()) return;
    words += fmt::format("{}only the {} one has {}", words.empty() ? "" : "; ", whose,
                         format_names(names));
  };
  add("old", difference.old_only);
  add("new", difference.new_only);
  if (words.empty()) return {};
  return Error(Code::kAlreadyExists, "save/other-tree",
               fmt::format("{} holds a tree with other leaves ({}); {}", place, words, kWhatToDo));
}

/// What readers see of a directory.
struct SeenDirectory {
  DirectoryView place;
  Snapshot snapshot;
  Result<std::optional<EformerIndex>> index;
};

Result<SeenDirectory> see_directory(const Uri& directory, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(DirectoryView place, view_directory(directory, runtime));
  CAIRN_TRY_ASSIGN(Snapshot snapshot, place.destination->snapshot());
  auto index = read_index(place);
  return SeenDirectory{std::move(place), std::move(snapshot), std::move(index)};
}

Result<LeavesThere> recorded_leaves(const SeenDirectory& seen, const RecordPrefix& recorded) {
  CAIRN_TRY_ASSIGN(const OpenedPrefix prefix, open_recorded(seen.place, seen.snapshot, recorded));
  // While a decided attempt lies there, the index in place may be that of the save before.
  const auto& attempts = seen.snapshot.attempts;
  const bool settled =
      std::ranges::find(attempts, AttemptState::kDecided, &AttemptView::state) == attempts.end();
  const auto* list = settled && prefix.manifest.layout == kZarr2Layout && seen.index && *seen.index
                         ? (*seen.index)->find(recorded.name)
                         : nullptr;
  return list != nullptr ? leaves_of(prefix, *list) : leaves_of(prefix);
}

bool is_recorded(const Snapshot& snapshot, const std::string& entry) {
  if (!snapshot.record) return false;
  return std::ranges::any_of(snapshot.record->prefixes, [&](const RecordPrefix& prefix) {
    return std::ranges::find(prefix.entries, entry) != prefix.entries.end();
  });
}

/// The set or the file that the save's own would take the place of.
Result<std::optional<LeavesThere>> safetensors_leaves(const SeenDirectory& seen,
                                                      const std::string& prefix, Runtime& runtime) {
  const std::string file = safetensors_base(prefix) + ".safetensors";
  for (const std::string& name : {file + ".index.json", file}) {
    if (!std::ranges::binary_search(seen.place.files, name) || is_recorded(seen.snapshot, name))
      continue;
    DirectoryView alone = seen.place;
    alone.files = {name};
    CAIRN_TRY_ASSIGN(const auto found, open_safetensors(alone, runtime));
    if (found) return std::optional(leaves_of(found->prefixes.front()));
  }
  return std::optional<LeavesThere>();
}

Result<std::optional<LeavesThere>> find_leaves(const SeenDirectory& seen, const Manifest& coming,
                                               Runtime& runtime) {
  const RecordPrefix* recorded =
      seen.snapshot.record ? seen.snapshot.record->find(coming.prefix) : nullptr;
  if (recorded != nullptr) {
    CAIRN_TRY_ASSIGN(LeavesThere leaves, recorded_leaves(seen, *recorded));
    return std::optional(std::move(leaves));
  }
  CAIRN_TRY(seen.index);
  const auto* list = *seen.index ? (*seen.index)->find(coming.prefix) : nullptr;
  if (list != nullptr) return std::optional(leaves_of(coming.prefix, *list));
  if (coming.layout == kSafetensorsLayout) return safetensors_leaves(seen, coming.prefix, runtime);
  return std::optional<LeavesThere>();
}

void tell_unread(const std::string& place, const Error& error, Runtime& runtime) {
  runtime.log(LogLevel::kWarning, "save/unread-tree",
              fmt::format("what {} holds cannot be read, so a save replaces it without comparing "
                          "leaves: {}",
                          place, error.to_string()));
}

}  // namespace

Result<void> check_replaced_trees(const std::vector<PreparedTree>& trees, const Uri& directory,
                                  Runtime& runtime) {
  const std::string path = directory.to_string();
  const auto seen = see_directory(directory, runtime);
  if (!seen) {
    tell_unread(path, seen.error(), runtime);
    return {};
  }
  for (const PreparedTree& tree : trees) {
    const std::string& prefix = tree.manifest.prefix;
    const std::string place =
        prefix.empty() ? path : fmt::format("prefix '{}' in {}", prefix, path);
    const auto there = find_leaves(*seen, tree.manifest, runtime);
    if (!there) {
      tell_unread(place, there.error(), runtime);
    } else if (*there) {
      CAIRN_TRY(check_same_leaves(**there, tree, place));
    }
  }
  return {};
}

Result<void> check_replaced_file(const PreparedTree& tree, const Uri& file, Runtime& runtime) {
  if (const auto local = file.local()) {
    const auto info = runtime.file_system().stat(nullptr, *local, /*follow_links=*/false);
    if (!info || info->kind != storage::FileKind::kFile) return {};
  }
  const auto [parent, name] = split_uri(file);
  auto store = storage::open_store(parent, {.file_system = &runtime.file_system()});
  if (!store) return {};
  const auto info = (*store)->stat(name);
  if (!info || info->size == 0) return {};
  const std::string place = file.to_string();
  const auto refuse = [&](const std::string& what) {
    return Error(Code::kAlreadyExists, "save/other-tree",
                 fmt::format("{} is not a safetensors file{}; {}", place, what, kWhatToDo));
  };
  if (const auto kind = kind_of_file(**store, name)) return refuse(fmt::format(" but {}", *kind));
  const auto there = open_safetensors_file(*std::move(store), name);
  if (!there) return refuse(fmt::format(" that can be read ({})", there.error().message()));
  return check_same_leaves(leaves_of(*there), tree, place);
}

}  // namespace cairn
