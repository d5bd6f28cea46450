// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/own_files.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/base/uri.h"
#include "cairn/checkpoint/layout/eformer_index.h"
#include "cairn/checkpoint/names.h"

namespace cairn::inline manager {

namespace {

class Sorter {
 public:
  Sorter(const Directory& dest, const Record& record) : dest_(dest), record_(record) {
    for (const RecordPrefix& prefix : record.prefixes)
      entries_.insert(prefix.entries.begin(), prefix.entries.end());
  }

  Result<OwnFiles> run() {
    OwnFiles own;
    CAIRN_TRY_ASSIGN(own.shared, is_shared());
    for (const std::string& name : known_files(own.shared)) {
      CAIRN_TRY_ASSIGN(const bool there, dest_.exists(name));
      if (there) own.beside.push_back(name);
    }
    CAIRN_TRY(look_for_others(".", own));
    return own;
  }

 private:
  std::vector<std::string> known_files(bool shared) const {
    std::vector<std::string> names{std::string(kMarkName), std::string(kTornMarkName)};
    if (record_.prefixes.empty() || shared) return names;
    names.emplace_back(kCheckpointMetadataName);
    names.emplace_back(kIndexName);
    for (const RecordPrefix& prefix : record_.prefixes) {
      if (!prefix.name.empty()) names.push_back(structure_name(prefix.name));
    }
    return names;
  }

  Result<bool> is_shared() const {
    CAIRN_TRY_ASSIGN(const auto text, dest_.read(std::string(kIndexName), kMaxEformerIndexBytes));
    if (!text) return false;
    const auto index = parse_eformer_index(*text);
    // Nobody knows what an index lists that cannot be read.
    if (!index) return true;
    if (index->arrays && !index->arrays->empty() && record_.find("") == nullptr) return true;
    return std::ranges::any_of(index->prefixes, [&](const IndexedPrefix& prefix) {
      return record_.find(prefix.name) == nullptr;
    });
  }

  static bool is_own_file(const std::string& name, const OwnFiles& own) {
    return name.starts_with(kAttemptPrefix) || name == kRecordName ||
           std::ranges::find(own.beside, name) != own.beside.end();
  }

  // A directory on the way to an entry is ours if everything in it is.
  Result<void> look_for_others(const std::string& directory, OwnFiles& own) const {
    CAIRN_TRY_ASSIGN(const auto names, dest_.list(directory));
    for (const storage::DirEntry& child : names) {
      if (!own.other.empty()) return {};
      const std::string name = directory == "." ? child.name : directory + "/" + child.name;
      const bool link = child.kind == storage::FileKind::kSymlink;
      const bool ours = entries_.contains(name) || (directory == "." && is_own_file(name, own));
      if (ours && !link) continue;
      const auto below = entries_.lower_bound(name + "/");
      const bool on_the_way = below != entries_.end() && below->starts_with(name + "/");
      if (on_the_way && child.kind == storage::FileKind::kDirectory) {
        CAIRN_TRY(look_for_others(name, own));
      } else {
        own.other = name;
      }
    }
    return {};
  }

  const Directory& dest_;
  const Record& record_;
  std::set<std::string> entries_;
};

/// What goes away meanwhile is not there.
template <typename T>
Result<std::optional<T>> if_there(Result<T> found) {
  if (found) return std::optional(*std::move(found));
  if (found.error().code() == Code::kNotFound) return std::optional<T>();
  return found.error();
}

/// How many there are.
Result<std::uint64_t> add_files_of(const Directory& directory, const std::string& below,
                                   Sha256& seen) {
  std::uint64_t files = 0;
  CAIRN_TRY_ASSIGN(const auto entries, if_there(directory.list(below.empty() ? "." : below)));
  if (!entries) return files;
  for (const storage::DirEntry& entry : *entries) {
    if (below.empty() && entry.name.starts_with(kAttemptPrefix)) continue;
    const std::string name = join_path(below, entry.name);
    CAIRN_TRY_ASSIGN(const auto info, if_there(directory.stat(name)));
    if (!info) continue;
    if (info->kind == storage::FileKind::kDirectory) {
      CAIRN_TRY_ASSIGN(const std::uint64_t inside, add_files_of(directory, name, seen));
      files += inside;
      continue;
    }
    seen.update(
        as_bytes(fmt::format("{} {} {} {}\n", name, info->inode, info->size, info->modified_ns)));
    ++files;
  }
  return files;
}

}  // namespace

Result<OwnFiles> find_own_files(const Directory& dest, const Record& record) {
  return Sorter(dest, record).run();
}

Result<std::string> state_of_files(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(path));
  const auto directory = Directory::open(runtime.file_system(), uri.path, false);
  if (!directory) {
    if (directory.error().code() == Code::kNotFound) return std::string();
    return directory.error();
  }
  Sha256 seen;
  CAIRN_TRY_ASSIGN(const std::uint64_t files, add_files_of(*directory, "", seen));
  return files == 0 ? std::string() : seen.hex();
}

}  // namespace cairn::inline manager
