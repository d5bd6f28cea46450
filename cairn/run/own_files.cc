// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/own_files.h"

#include <algorithm>
#include <set>

#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/names.h"

namespace cairn {

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

}  // namespace

Result<OwnFiles> find_own_files(const Directory& dest, const Record& record) {
  return Sorter(dest, record).run();
}

}  // namespace cairn
